"""The named datasets (sine, mnist, fashion_mnist, celeba, teapot) and how they are fetched."""
