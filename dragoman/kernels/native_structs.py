"""The structures that the native library is given; kernels/cpu/int8_stack.h has the same fields in
the same order, and says what they mean."""

from __future__ import annotations

from ctypes import Structure, c_double, c_float, c_int32, c_int64, c_void_p


class Matrix(Structure):
    """A matrix of 8-bit integers, each row with a scale."""

    _fields_ = (
        ("packed", c_void_p),
        ("scale", c_void_p),
        ("bias", c_void_p),
        ("sums", c_void_p),
        ("columns", c_int32),
        ("rows", c_int32),
    )


class Norm(Structure):
    """A norm, or none."""

    _fields_ = (
        ("gain", c_void_p),
        ("bias", c_void_p),
        ("epsilon", c_float),
        ("kind", c_int32),
    )


class Layer(Structure):
    """One layer of a stack."""

    _fields_ = (
        ("own", Matrix),
        ("own_out", Matrix),
        ("cross_query", Matrix),
        ("cross_out", Matrix),
        ("inner", Matrix),
        ("gate", Matrix),
        ("outer", Matrix),
        ("after_own", Norm),
        ("after_cross", Norm),
        ("after_feedforward", Norm),
    )


class Stack(Structure):
    """An encoder or a decoder."""

    _fields_ = (
        ("layers", c_void_p),
        ("embeddings", c_void_p),
        ("embedding_scale", c_void_p),
        ("positions", c_void_p),
        ("frequencies", c_void_p),
        ("embedding_norm", Norm),
        ("norm", Norm),
        ("embedding_factor", c_float),
        ("n_layers", c_int32),
        ("width", c_int32),
        ("heads", c_int32),
        ("kv_heads", c_int32),
        ("size", c_int32),
        ("activation", c_int32),
        ("norm_first", c_int32),
        ("across", c_int32),
        ("vocabulary", c_int32),
        ("most_positions", c_int32),
    )


class Past(Structure):
    """What a decoder remembers of a search."""

    _fields_ = (
        ("caches", c_void_p),
        ("keys", c_void_p),
        ("values", c_void_p),
        ("records", c_void_p),
        ("ancestors", c_void_p),
        ("bias", c_void_p),
        ("lengths", c_void_p),
        ("rows", c_int64),
        ("beams", c_int64),
        ("position", c_int64),
        ("capacity", c_int64),
        ("ancestor_capacity", c_int64),
        ("source", c_int64),
    )


class Standing(Structure):
    """Where the sentences of a search stand."""

    _fields_ = (
        ("live", c_void_p),
        ("finished", c_void_p),
        ("over", c_void_p),
        ("max_lengths", c_void_p),
        ("rows", c_int64),
        ("beams", c_int64),
        ("size", c_int64),
        ("length", c_int64),
        ("end", c_int64),
        ("alpha", c_float),
    )


class Choice(Structure):
    """The continuations taken at one position."""

    _fields_ = (
        ("tokens", c_void_p),
        ("beams", c_void_p),
        ("log_probs", c_void_p),
        ("totals", c_void_p),
    )


class Turn(Structure):
    """One position of a search that nothing steers."""

    _fields_ = (
        ("stack", c_void_p),
        ("past", c_void_p),
        ("standing", c_void_p),
        ("choice", c_void_p),
        ("outputs", c_void_p),
        ("ids", c_void_p),
        ("tokens", c_void_p),
        ("features", c_void_p),
        ("logits", c_void_p),
        ("running", c_void_p),
    )


class Chosen(Structure):
    """What a search has chosen at all of its positions."""

    _fields_ = (
        ("tokens", c_void_p),
        ("beams", c_void_p),
        ("log_probs", c_void_p),
        ("totals", c_void_p),
        ("max_lengths", c_void_p),
        ("positions", c_int64),
        ("rows", c_int64),
        ("width", c_int64),
        ("end", c_int64),
        ("alpha", c_double),
    )


class Outputs(Structure):
    """The best output of each sentence."""

    _fields_ = (
        ("tokens", c_void_p),
        ("log_probs", c_void_p),
        ("scores", c_void_p),
        ("counts", c_void_p),
    )
