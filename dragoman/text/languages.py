"""What languages are called in English. Knows codes of two letters."""

from __future__ import annotations

_NAMES = """
ar=Arabic bg=Bulgarian bn=Bengali ca=Catalan cs=Czech da=Danish de=German el=Greek en=English
eo=Esperanto es=Spanish et=Estonian fa=Persian fi=Finnish fr=French ga=Irish he=Hebrew hi=Hindi
hr=Croatian hu=Hungarian id=Indonesian is=Icelandic it=Italian ja=Japanese ka=Georgian ko=Korean
lt=Lithuanian lv=Latvian mt=Maltese nl=Dutch no=Norwegian pl=Polish pt=Portuguese ro=Romanian
ru=Russian sk=Slovak sl=Slovenian sr=Serbian sv=Swedish sw=Swahili th=Thai tr=Turkish uk=Ukrainian
zh=Chinese
"""
NAMES = dict(name.split("=") for name in _NAMES.split())
