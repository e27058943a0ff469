# spikein in a container, from its wheel; for CPUs, or with another TORCH_INDEX for GPUs:
#   docker build --tag spikein .
#   docker build --tag spikein:cuda --build-arg TORCH_INDEX=https://pypi.org/simple .
# Runs, store and caches go to the folder that is mounted, and belong to whoever starts it; a GPU is
# seen with `--gpus all`:
#   docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/spikein" spikein run quickstart
FROM python:3.11-slim-bookworm AS build

# Where torch comes from. 2.13.0+cpu of this index goes before 2.13.0 of PyPI, which is for CUDA.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
# Such as "[ray,slurm]".
ARG EXTRAS=""

WORKDIR /build
COPY constraints.txt ./
RUN python -m venv /opt/spikein \
 && /opt/spikein/bin/python -m pip install --no-cache-dir --upgrade pip setuptools --constraint constraints.txt \
 && /opt/spikein/bin/python -m pip install --no-cache-dir --constraint constraints.txt \
    --extra-index-url "${TORCH_INDEX}" torch

COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE ./
COPY configs configs
COPY inject inject
COPY train train
COPY detect detect
COPY analysis analysis
COPY spikein spikein
RUN /opt/spikein/bin/python -m pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir wheel . \
 && /opt/spikein/bin/python -m pip install --no-cache-dir --constraint constraints.txt \
    --extra-index-url "${TORCH_INDEX}" "$(ls wheel/spikein-*.whl)${EXTRAS}"

FROM python:3.11-slim-bookworm

# Debian's packages to add, such as "g++", which DeepSpeed and torch.compile need.
ARG PACKAGES=""
# hadolint ignore=DL3008
RUN if [ -n "${PACKAGES}" ]; then \
      apt-get update \
      && apt-get install --yes --no-install-recommends ${PACKAGES} \
      && rm -rf /var/lib/apt/lists/*; \
    fi

COPY --from=build /opt/spikein /opt/spikein
# Whoever the user is, caches go to the mounted folder, too.
ENV PATH=/opt/spikein/bin:$PATH HOME=/spikein
RUN useradd --uid 1000 --home-dir /spikein --create-home spikein
USER 1000
WORKDIR /spikein
ENTRYPOINT ["spikein"]
CMD ["--help"]
