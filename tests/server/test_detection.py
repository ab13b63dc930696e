"""Detection: languages that are not loaded are told apart from those that are, text by text."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman.errors import OptionError
from dragoman.server.fleet import Fleet
from dragoman.tasks.translate import Translator
from dragoman.text.detection import Detector

# Sentences as people type them, some of two or three words, of languages that are not loaded.
FOREIGN = {
    "ar": ["أين أقرب محطة؟", "شكرا جزيلا على مساعدتك"],
    "ca": ["On és l'estació més propera?", "Moltes gràcies per la vostra ajuda"],
    "cs": ["Kde je nejbližší nádraží?", "Mockrát děkuji za pomoc"],
    "da": ["Hvor er den nærmeste station?", "Mange tak for hjælpen"],
    "el": ["Πού είναι ο πλησιέστερος σταθμός;", "Ευχαριστώ πολύ για τη βοήθεια"],
    "es": ["¿Dónde está la estación más cercana?", "Muchas gracias por su ayuda"],
    "fa": ["نزدیک‌ترین ایستگاه کجاست؟", "از کمک شما بسیار سپاسگزارم"],
    "fi": ["Missä on lähin asema?", "Kiitos paljon avustasi"],
    "fr": ["Bonjour tout le monde", "Où est la gare la plus proche ?"],
    "he": ["איפה התחנה הקרובה ביותר?", "תודה רבה על העזרה"],
    "hi": ["सबसे नज़दीकी स्टेशन कहाँ है?", "आपकी मदद के लिए बहुत धन्यवाद"],
    "hr": ["Gdje je najbliža postaja?", "Puno hvala na pomoći"],
    "hu": ["Hol van a legközelebbi állomás?", "Nagyon köszönöm a segítséget"],
    "id": ["Di mana stasiun terdekat?", "Terima kasih banyak atas bantuan Anda"],
    "it": ["Dov'è la stazione più vicina?", "Grazie mille per il tuo aiuto"],
    "ja": ["一番近い駅はどこですか？", "助けてくれてありがとうございます"],
    "ko": ["가장 가까운 역이 어디예요?", "도와주셔서 감사합니다"],
    "nl": ["Waar is het dichtstbijzijnde station?", "Hartelijk bedankt voor uw hulp"],
    "no": ["Hvor er nærmeste stasjon?", "Tusen takk for hjelpen"],
    "pl": ["Gdzie jest najbliższa stacja?", "Dziękuję bardzo za pomoc"],
    "pt": ["Onde fica a estação mais próxima?", "Muito obrigado pela sua ajuda"],
    "ro": ["Unde este cea mai apropiată gară?", "Mulțumesc foarte mult pentru ajutor"],
    "ru": ["Где ближайшая станция?", "Большое спасибо за помощь"],
    "sk": ["Kde je najbližšia stanica?", "Ďakujem veľmi pekne za pomoc"],
    "sv": ["Var ligger närmaste station?", "Tack så mycket för hjälpen"],
    "sw": ["Kituo cha karibu kiko wapi?", "Asante sana kwa msaada wako"],
    "tr": ["En yakın istasyon nerede?", "Yardımınız için çok teşekkür ederim"],
    "uk": ["Де найближча станція?", "Щиро дякую за допомогу"],
    "vi": ["Ga gần nhất ở đâu?", "Cảm ơn bạn rất nhiều"],
    "zh": ["最近的车站在哪里？", "非常感谢你的帮助"],
}
# A single word may be of any language; it is taken for one that is loaded.
OWN = {
    "en": ["Where is the nearest station?", "Thank you very much", "Good morning", "Save file"],
    "de": ["Wo ist der nächste Bahnhof?", "Vielen Dank", "Guten Morgen", "Abbrechen", "Danke"],
}
ENGLISH = "I would like a cup of coffee with milk."
GERMAN = "Ich hätte gern eine Tasse Kaffee mit Milch."
FRENCH = "Je voudrais une tasse de café, s'il vous plaît."


@pytest.fixture(scope="module")
def detector() -> Detector:
    return Detector(["en", "de"])


def test_other_languages_are_none_of_ours(detector: Detector) -> None:
    """Of thirty languages, nearly all sentences are recognised, and none is taken for ours."""
    found = [(code, detector.detect(text)) for code, texts in FOREIGN.items() for text in texts]
    assert len(FOREIGN) == 30
    assert not any(one.is_loaded for _, one in found)
    right = sum(one.language == code for code, one in found)
    assert right >= 0.95 * len(found)


def test_ours_are_ours_even_in_few_words(detector: Detector) -> None:
    for code, texts in OWN.items():
        for text in texts:
            found = detector.detect(text)
            assert (found.language, found.is_loaded) == (code, True)
            assert 0 < found.confidence <= 1
    assert detector.detect("OK").is_loaded
    assert detector.detect("").is_loaded


def test_codes_of_three_letters_and_languages_that_are_not_known() -> None:
    assert Detector(["eng", "DEU"]).detect(GERMAN).language == "DEU"
    assert Detector(["en", "nb"]).detect("Jeg vil gjerne ha en kopp kaffe.").language == "nb"
    moroccan = "كيفاش داير؟ لاباس عليك؟"  # taken for Egyptian by the detector
    assert Detector(["en", "de"]).detect(moroccan).language == "ar"
    found = Detector(["en", "ar"]).detect(moroccan)
    assert (found.language, found.is_loaded) == ("ar", True)
    twi = "Me din de Kofi. Wo ho te sɛn? Mepa wo kyɛw"
    assert not Detector(["xx"]).knows_any
    assert Detector(["en", "tw"]).detect(twi).language in ("en", "tw")


def test_each_text_of_a_batch_is_detected_by_itself(client_of: Any) -> None:
    client = client_of("en-de", "de-en", "en-es", "de-es")
    answer = client.post("/translate", json={"q": [ENGLISH, GERMAN], "target": "es"})
    assert answer.status_code == 200, answer.text
    found = [one["language"] for one in answer.json()["detectedLanguage"]]
    assert found == ["en", "de"]
    answer = client.post("/v1/translate", json={"text": [GERMAN, ENGLISH], "target": "es"})
    assert [one["source"] for one in answer.json()["translations"]] == ["de", "en"]
    page = {"q": [f"<p>{GERMAN}</p>", f"<p>{ENGLISH}</p>"], "target": "es", "format": "html"}
    answer = client.post("/translate", json=page)
    assert [one["language"] for one in answer.json()["detectedLanguage"]] == ["de", "en"]


@pytest.mark.parametrize("path", ["/translate", "/v1/translate"])
def test_a_text_of_no_model_is_refused_by_the_name_of_its_language(
    client_of: Any, path: str
) -> None:
    client = client_of("en-de", "de-en")
    key = "q" if path == "/translate" else "text"
    answer = client.post(path, json={key: FRENCH, "source": "auto", "target": "de"})
    assert answer.status_code == 400
    assert "seems to be French (fr)" in answer.json()["error"]
    (found,) = client.post("/detect", json={"q": FRENCH}).json()
    assert found["language"] == "fr"
    assert found["confidence"] > 40


def test_tw_and_twi_are_one_language(client_of: Any) -> None:
    client = client_of("en-twi")
    for code in ("tw", "twi", "TW"):
        body = {"q": "one two", "source": "eng", "target": code}
        assert client.post("/translate", json=body).json() == {"translatedText": "eins zwei"}
    names = {one["code"]: one["name"] for one in client.get("/languages").json()}
    assert names == {"en": "English", "tw": "Twi"}


def test_a_model_without_languages_is_not_served(translator: Translator) -> None:
    """It would give every text back as it is."""
    about = replace(translator.description, source_language="", target_language="")
    nameless: Callable[[Path], Translator] = lambda folder: Translator(  # noqa: E731
        translator.runtime, translator.tokenizer, about
    )
    with pytest.raises(OptionError, match=r"m does not say from which .* --from and --to"):
        Fleet([Path("m")], nameless, 1000)


def test_which_text_of_a_batch_is_refused(client_of: Any) -> None:
    client = client_of("en-de", "de-en")
    answer = client.post("/translate", json={"q": [ENGLISH, GERMAN, FRENCH], "target": "de"})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("text 3 of 3: the text seems to be French (fr)")


def test_the_language_of_a_long_text_is_detected_in_a_thread(
    client_of: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty long texts that came at the same moment held up everything else for 0.2 s."""
    where: dict[int, str] = {}
    detect = Fleet.detect

    def noted(fleet: Fleet, text: str) -> Any:
        where[len(text)] = threading.current_thread().name
        return detect(fleet, text)

    monkeypatch.setattr(Fleet, "detect", noted)
    client = client_of("en-de", "de-en")
    texts = ["one two three", "one two three " * 80]
    for path, more in (("/detect", {}), ("/translate", {"source": "auto", "target": "de"})):
        where.clear()
        answer = client.post(path, json={"q": texts, **more})
        assert answer.status_code == 200, answer.text
        assert where[len(texts[1])].startswith("aside")
        assert not where[len(texts[0])].startswith("aside")
