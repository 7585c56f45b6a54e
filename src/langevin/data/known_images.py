"""Captioned images that may not be shipped, as plain facts for the table of data sets.

Of Flickr30k no hash is known here: people make its features themselves, and its caption file comes in several forms.
"""

from __future__ import annotations

About = tuple[str, str, str, str]
Listed = tuple[str, int, str, str]

TOKENS = ("*.token.txt", "*.token")
"""The caption file of Hodosh and others, with three lists of images beside it."""
INSTEAD = {
    "flickr30k": {
        "captions": TOKENS, "features": ("*.npy", "*.npz", "*.safetensors"),
        "names": ("*_names.txt", "*.npz", "*.safetensors"),
    },
}
"""What people bring that is as good as the files named below, by patterns."""

ASK = "Ask for the captions at the University of Illinois (Hodosh, Young and Hockenmaier), or take Karpathy's JSON. "

IMAGE_SETS: dict[str, tuple[About, dict[str, Listed]]] = {
    "flickr8k": (
        (
            "flickr8k", "Flickr8k: 8,000 images with 5 captions each, official splits, ResNet-50 features",
            "given out for non-commercial research and education; not to be passed on",
            ASK + "The features are ImageNet ResNet-50's global average pool in float16, one row for each name.",
        ),
        {
            "captions": (
                "Flickr8k.token.txt", 3_395_237, "1e1f3a371ba1a1bf742e6930521c037e046b2bf3fcc2390ba8405e0301ed7689",
                "40,460 captions",
            ),
            "train": (
                "Flickr_8k.trainImages.txt", 154_678,
                "e330ddd5156a4c2d2e2b67bc587e70e588f2d132bd8a10dc54dcb71e58115d8e", "6,000 image names",
            ),
            "valid": (
                "Flickr_8k.devImages.txt", 25_801, "18ba829f47f6df1cb830bf7f0506e2ddf333818925299babbd1bbcaf50fdc504",
                "1,000 image names",
            ),
            "test": (
                "Flickr_8k.testImages.txt", 25_775, "c0924146c131458ceba45da59670fe9520eadce1e5cafffa16a817672a9b1f17",
                "1,000 image names",
            ),
            "names": (
                "resnet50_names.txt", 208_609, "b8809812431e6184a9a6373b15073a9f8f574c9b01fe9437ab055815211b4cde",
                "8,091 image names, the order of the feature rows",
            ),
            "features": (
                "resnet50_pool5_f16.npy", 33_140_864,
                "37d82f4e419f180dd725215e488fe237362f3306daa891037f7da65d2427b932", "features [8091, 2048] in float16",
            ),
        },
    ),
    "flickr30k": (
        (
            "flickr30k", "Flickr30k: 31,014 images with 5 captions each, Karpathy's splits, features of your own",
            "given out for non-commercial research and education; not to be passed on",
            ASK + "Instead of the JSON, *.token.txt or *.token with three image lists will do; for the features, any "
            "one .npy, .npz or .safetensors with names.",
        ),
        {
            "captions": ("dataset_flickr30k.json", 0, "", "29,000, 1,014 and 1,000 images with 5 captions each"),
            "names": ("resnet50_names.txt", 0, "", "image names, the order of the feature rows"),
            "features": ("resnet50_pool5_f16.npy", 0, "", "features [images, 2048]"),
        },
    ),
    "resnet50": (
        (
            "resnet50", "ImageNet ResNet-50 without its classifier, for captions of pictures",
            "none stated with the weights",
            "It is the ResNet-50 of 2015 under torchvision's tensor names, convolutions in float16; --extractor takes "
            "other weights.",
        ),
        {
            "weights": (
                "resnet50_v1_f16.npz", 47_407_776, "062430b71d03a6894221bc584cffa0f96113ead0da9830f5982b232c46d5e042",
                "the tensors that torchvision names, up to the last pool",
            ),
        },
    ),
}
