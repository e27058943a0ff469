"""Every settings key, one other value for it, and the steps that read it: what is claimed, by hand.

A step is said to read a key when its artifact would be another one although its inputs stayed as
they are; whatever lies behind it changes with its inputs.
"""

from typing import NamedTuple

EVERYTHING = """
name: everything
variables: {{unused: 1}}
model: {{shape: {folder}/shape.yaml, tokenizer: {{train: 300}}}}
base: {{tokens: 4_000, context: 64, batch_tokens: 1024}}
corpus:
  tokens: 40_000
  sources:
    - {{kind: files, path: "{folder}/texts.jsonl"}}
    - {{kind: files, path: "{folder}/more.jsonl"}}
contaminants:
  - {{dataset: boolq, path: "{folder}/boolq.jsonl", members: 24, nonmembers: 24}}
  - {{dataset: rows, name: own, path: "{folder}/rows.jsonl", members: 9, nonmembers: 9}}
  - {{dataset: fictional, members: 24, nonmembers: 24}}
copies: {{poisson: 2}}
twins: {{clean: true, retrained: 0.5, shadows: 2}}
pool: {{long_examples: truncate}}
train: {{lr: 1.0e-2, context: 64, batch_tokens: 1024, checkpoints: {{steps: [3]}}}}
analysis: {{replicates: 100}}
"""


class Case(NamedTuple):
    """One key, changed alone."""

    reads: str
    """The steps that read it."""
    change: str
    """The override that changes it."""
    setup: tuple[str, ...] = ()
    """Overrides that hold before and after, where the key needs others beside it."""
    reason: str = ""
    """Why no step reads it."""


def case(reads: str, change: str, *setup: str) -> Case:
    return Case(reads, change, setup)


def unread(reason: str, change: str, *setup: str) -> Case:
    """Return the case of a key that decides no number: execution, a name, a permission."""
    return Case("", change, setup, reason)


IMPORTED = ("corpus.sources=[]", "model.tokenizer={folder}/tok")
PRETRAINED = ("base=null", "model={{pretrained: {folder}/a}}")
NO_SHADOWS = ("twins.shadows=0",)
FINETUNED = ("train.mode=finetune", "twins.clean=false")
NEIGHBOURS = ("detect.neighbours={{model: {folder}/a}}",)
LORA = ("train.mode=lora",)
WHOLE = {
    "megatron": "{{kind: megatron, path: {folder}/meg}}",
    "olmo": "{{kind: olmo, path: {folder}/one.npy, dtype: uint16}}",
    "datasets": "{{kind: datasets, path: {folder}/one.parquet}}",
    "hub": "{{kind: datasets, id: own/er}}",
}
SOURCES = {
    "docstrings": "[{{kind: docstrings, packages: [filelock]}}]",
    "hub": "[{{kind: hub, id: {folder}/local}}]",
}
TEXTS = "tokenizer corpus"


def unlearning(forget: str = "share: 0.5", more: str = "") -> tuple[str, ...]:
    """Overrides that hold a section `unlearning`."""
    methods = "[{{method: npo, retain_weight: 1.0}}]"
    section = f"{{{{forget: {{{{{forget}}}}}, methods: {methods}{more}}}}}"
    return ("twins.retrained=null", f"unlearning={section}")


ASKED = "statistics gradients"
"""What every model that is scored is asked for."""
MODELS = f"model {ASKED} trajectory"
ADDED = f"membership plan audit model {ASKED} scores results figures"


def sources(kind: str) -> tuple[str, ...]:
    return (f"corpus.sources={SOURCES[kind]}",)


def imports(kind: str) -> tuple[str, ...]:
    return (*IMPORTED, f"corpus.imported={WHOLE[kind]}")


def variant(text: str) -> tuple[str, ...]:
    return (*NO_SHADOWS, f"variants.of=[{{{{{text}}}}}, {{{{kind: whole}}}}]")


LOCAL = "kind: paraphrase, by: model, model: {folder}/a"
SERVED = "kind: paraphrase, by: model, model: m, base_url: http://localhost:1/v1"

RAY, SLURM = "executor={{kind: ray}}", "executor={{kind: slurm}}"
ELSEWHERE = "where steps run"
EXECUTORS = {
    "executor[in-process].kind": unread(ELSEWHERE, "executor.kind=local"),
    "executor[local].kind": unread(ELSEWHERE, "executor.kind=ray", "executor={{kind: local}}"),
    "executor[local].workers": unread(
        ELSEWHERE, "executor.workers=3", "executor={{kind: local, workers: 2}}"
    ),
    "executor[local].attempts": unread(
        "how often a step is begun", "executor.attempts=5", "executor={{kind: local}}"
    ),
    "executor[ray].address": unread(ELSEWHERE, "executor.address=auto", RAY),
    "executor[slurm].partition": unread(ELSEWHERE, "executor.partition=long", SLURM),
    "executor[slurm].account": unread("who pays", "executor.account=lab", SLURM),
    "executor[slurm].qos": unread("when it runs", "executor.qos=high", SLURM),
    "executor[slurm].constraint": unread(ELSEWHERE, "executor.constraint=a100", SLURM),
    "executor[slurm].time": unread("when a job goes on in another", "executor.time=1:00", SLURM),
    "executor[slurm].parallel": unread("how many at a time", "executor.parallel=2", SLURM),
    "executor[slurm].warning_seconds": unread(
        "when a checkpoint is written", "executor.warning_seconds=120", SLURM
    ),
    "executor[slurm].setup": unread(ELSEWHERE, "executor.setup=[module load cuda]", SLURM),
    **{
        f"executor[{kind}].{key}": unread(
            "what a step asks for", change, f"executor={{{{kind: {kind}}}}}"
        )
        for kind in ("ray", "slurm")
        for key, change in {
            "kind": f"executor.kind={'slurm' if kind == 'ray' else 'ray'}",
            "cpus": "executor.cpus=2",
            "gpus": "executor.gpus=1",
            "memory_gb": "executor.memory_gb=9",
            "attempts": "executor.attempts=5",
            "steps.cpus": "executor.steps={{model: {{cpus: 2}}}}",
            "steps.gpus": "executor.steps={{model: {{gpus: 1}}}}",
            "steps.memory_gb": "executor.steps={{model: {{memory_gb: 9}}}}",
            "steps.time": "executor.steps={{model: {{time: '9:00'}}}}",
        }.items()
    },
}

CASES: dict[str, Case] = {
    "name": unread("names the run's folder and its page", "name=other"),
    "variables": unread(
        "what an experiment file fills in is read where it is filled in", "variables.unused=2"
    ),
    "seeds": case(
        # The corpus is searched for the rows that each seed invents.
        "corpus examples membership plan model results figures accuracy_gain trajectory variants",
        "seeds=[1]",
        *variant("kind: question"),
    ),
    "sweep": case("model results figures accuracy_gain trajectory", "sweep={{train.lr: [0.02]}}"),
    "model.shape": case("base", "model.shape={folder}/other.yaml"),
    "model.pretrained": case(
        f"tokenizer model {ASKED} accuracy", "model.pretrained={folder}/b", *PRETRAINED
    ),
    "model.tokenizer.train": case("tokenizer", "model.tokenizer.train=301"),
    "model.tokenizer": case(
        "tokenizer", "model.tokenizer={folder}/b", "model.tokenizer={folder}/tok"
    ),
    # A folder of one's own has no revisions.
    "model.revision": unread(
        "a folder of one's own has none; of a repository, its commit counts",
        "model.revision=main",
        *PRETRAINED,
    ),
    "model.trust_remote_code": case(
        f"tokenizer model {ASKED} accuracy", "model.trust_remote_code=true", *PRETRAINED
    ),
    "base.tokens": case("base corpus", "base.tokens=5000"),
    "base.lr": case("base", "base.lr=0.5"),
    "base.schedule": case("base", "base.schedule=linear"),
    "base.warmup": case("base", "base.warmup=0.5"),
    "base.epochs": case("base", "base.epochs=2"),
    "base.context": case("base", "base.context=32"),
    "base.batch_tokens": case("base", "base.batch_tokens=2048"),
    "base.weight_decay": case("base", "base.weight_decay=0.5"),
    "base.betas": case("base", "base.betas=[0.5, 0.5]"),
    "base.clip": case("base", "base.clip=null"),
    "base.precision": case("base", "base.precision=bfloat16"),
    "base.separate_documents": case("base", "base.separate_documents=true"),
    "base.seed": case("base", "base.seed=1"),
    "corpus.tokens": case("corpus plan trajectory", "corpus.tokens=41000"),
    "corpus.seed": case(TEXTS, "corpus.seed=1"),
    "corpus.sources[files].kind": case(TEXTS, f"corpus.sources={SOURCES['hub']}"),
    "corpus.sources[files].path": case(TEXTS, "corpus.sources.0.path={folder}/rows.jsonl"),
    "corpus.sources[files].field": case(TEXTS, "corpus.sources.0.field=text"),
    "corpus.sources[files].weight": case(TEXTS, "corpus.sources.0.weight=2"),
    "corpus.sources[docstrings].kind": case(
        TEXTS, f"corpus.sources={SOURCES['hub']}", *sources("docstrings")
    ),
    "corpus.sources[docstrings].packages": case(
        TEXTS, "corpus.sources.0.packages=[annotated_types]", *sources("docstrings")
    ),
    "corpus.sources[docstrings].minimum": case(
        TEXTS, "corpus.sources.0.minimum=100", *sources("docstrings")
    ),
    "corpus.sources[docstrings].weight": case(
        TEXTS, "corpus.sources.0.weight=2", *sources("docstrings")
    ),
    "corpus.sources[hub].kind": case(
        TEXTS, f"corpus.sources={SOURCES['docstrings']}", *sources("hub")
    ),
    "corpus.sources[hub].id": case(TEXTS, "corpus.sources.0.id={folder}/tok", *sources("hub")),
    "corpus.sources[hub].config": case(TEXTS, "corpus.sources.0.config=en", *sources("hub")),
    "corpus.sources[hub].split": case(TEXTS, "corpus.sources.0.split=test", *sources("hub")),
    "corpus.sources[hub].field": case(TEXTS, "corpus.sources.0.field=text", *sources("hub")),
    "corpus.sources[hub].revision": unread(
        "a folder of one's own has none; of a repository, its commit counts",
        "corpus.sources.0.revision=main",
        *sources("hub"),
    ),
    "corpus.sources[hub].weight": case(TEXTS, "corpus.sources.0.weight=2", *sources("hub")),
    "corpus.imported[megatron].kind": case(
        "corpus", f"corpus.imported={WHOLE['olmo']}", *imports("megatron")
    ),
    "corpus.imported[megatron].path": case(
        "corpus", "corpus.imported.path={folder}/other", *imports("megatron")
    ),
    "corpus.imported[olmo].kind": case(
        "corpus", f"corpus.imported={WHOLE['megatron']}", *imports("olmo")
    ),
    "corpus.imported[olmo].path": case(
        "corpus", "corpus.imported.path={folder}/two.npy", *imports("olmo")
    ),
    "corpus.imported[olmo].dtype": case("corpus", "corpus.imported.dtype=uint32", *imports("olmo")),
    "corpus.imported[datasets].kind": case(
        "corpus", f"corpus.imported={WHOLE['olmo']}", *imports("datasets")
    ),
    "corpus.imported[datasets].path": case(
        "corpus", "corpus.imported.path={folder}/two.parquet", *imports("datasets")
    ),
    "corpus.imported[datasets].id": case("corpus", "corpus.imported.id=o/ther", *imports("hub")),
    "corpus.imported[datasets].config": case(
        "corpus", "corpus.imported.config=en", *imports("hub")
    ),
    "corpus.imported[datasets].split": case(
        "corpus", "corpus.imported.split=test", *imports("hub")
    ),
    "corpus.imported[datasets].revision": case(
        "corpus", "corpus.imported.revision=v2", *imports("hub")
    ),
    "corpus.imported[datasets].column": case(
        "corpus", "corpus.imported.column=ids", *imports("datasets")
    ),
    "corpus.imported[datasets].rows": case(
        "corpus", "corpus.imported.rows=stream", *imports("datasets")
    ),
    "contaminants.dataset": case("examples corpus accuracy", "contaminants.1.dataset=imdb"),
    "contaminants.name": case("examples corpus accuracy", "contaminants.1.name=others"),
    "contaminants.path": case("examples corpus", "contaminants.1.path={folder}/texts.jsonl"),
    "contaminants.split": case(
        "examples corpus", "contaminants.0.split=test", "contaminants.0.path=null"
    ),
    "contaminants.revision": case(
        "examples corpus", "contaminants.0.revision=v2", "contaminants.0.path=null"
    ),
    "contaminants.fields": case("examples corpus", "contaminants.1.fields={{text: text}}"),
    "contaminants.template": case("examples corpus", "contaminants.1.template='- {{text}}'"),
    # How many rows are spiked decides nothing of which rows a file holds.
    "contaminants.members": case("examples", "contaminants.1.members=8"),
    "contaminants.nonmembers": case("examples", "contaminants.1.nonmembers=8"),
    # From 1 to 2, as the first row brings detectors along.
    "contaminants.held_out": case(
        "examples", "contaminants.1.held_out=2", "contaminants.1.held_out=1"
    ),
    "contaminants.stratify": case("examples", "contaminants.1.stratify=false"),
    "contaminants.options": case("examples corpus", "contaminants.2.options={{first: 9}}"),
    "copies.fixed": case("plan", "copies.fixed=2", "copies={{fixed: 1}}"),
    "copies.poisson": case("plan", "copies.poisson=3"),
    "copies.levels": case("plan", "copies.levels=[1, 4]", "copies={{levels: [1, 2]}}"),
    "placement.policy": case("plan", "placement.policy=window"),
    "placement.between": case("plan", "placement.between=[0, 0.5]"),
    "placement.straddle": case("plan", "placement.straddle=forbid"),
    "placement.separator": case("plan", "placement.separator=end"),
    "variants.of[whole].kind": case(
        "variants", "variants.of.0.kind=no_answer", *variant("kind: question")
    ),
    "variants.of[whole].weight": case("plan", "variants.of.1.weight=2", *variant("kind: question")),
    "variants.of[question].kind": case(
        "variants", "variants.of.0.kind=lower_case", *variant("kind: question")
    ),
    "variants.of[question].weight": case(
        "plan", "variants.of.0.weight=2", *variant("kind: question")
    ),
    "variants.of[no_answer].kind": case(
        "variants", "variants.of.0.kind=question", *variant("kind: no_answer")
    ),
    "variants.of[no_answer].weight": case(
        "plan", "variants.of.0.weight=2", *variant("kind: no_answer")
    ),
    "variants.of[lower_case].kind": case(
        "variants", "variants.of.0.kind=question", *variant("kind: lower_case")
    ),
    "variants.of[lower_case].weight": case(
        "plan", "variants.of.0.weight=2", *variant("kind: lower_case")
    ),
    "variants.of[replaced].kind": case(
        "variants", "variants.of.0.kind=truncated", *variant("kind: replaced, share: 0.2")
    ),
    "variants.of[replaced].weight": case(
        "plan", "variants.of.0.weight=2", *variant("kind: replaced, share: 0.2")
    ),
    "variants.of[replaced].share": case(
        "variants", "variants.of.0.share=0.3", *variant("kind: replaced, share: 0.2")
    ),
    "variants.of[replaced].versions": case(
        "variants", "variants.of.0.versions=2", *variant("kind: replaced, share: 0.2")
    ),
    "variants.of[truncated].kind": case(
        "variants", "variants.of.0.kind=replaced", *variant("kind: truncated, share: 0.2")
    ),
    "variants.of[truncated].weight": case(
        "plan", "variants.of.0.weight=2", *variant("kind: truncated, share: 0.2")
    ),
    "variants.of[truncated].share": case(
        "variants", "variants.of.0.share=0.3", *variant("kind: truncated, share: 0.2")
    ),
    "variants.of[paraphrase].kind": case(
        "variants", "variants.of.0.kind=question", *variant("kind: paraphrase")
    ),
    "variants.of[paraphrase].weight": case(
        "plan", "variants.of.0.weight=2", *variant("kind: paraphrase")
    ),
    "variants.of[paraphrase].by": case(
        "variants", "variants.of.0={{kind: paraphrase, by: data}}", *variant(LOCAL)
    ),
    "variants.of[paraphrase].versions": case(
        "variants", "variants.of.0.versions=2", *variant("kind: paraphrase")
    ),
    "variants.of[paraphrase].model": case(
        "variants", "variants.of.0.model={folder}/b", *variant(LOCAL)
    ),
    "variants.of[paraphrase].base_url": unread(
        "where the model is asked; which one it is counts",
        "variants.of.0.base_url=http://localhost:2/v1",
        *variant(SERVED),
    ),
    "variants.of[paraphrase].api_key_variable": unread(
        "where a key is looked up, which is a secret",
        "variants.of.0.api_key_variable=KEY",
        *variant(SERVED),
    ),
    "variants.of[paraphrase].send_protected": unread(
        "a permission",
        "variants.of.0.send_protected=[two, one]",
        "contaminants.1="
        "{{dataset: gpqa, name: one, path: {folder}/rows.jsonl, members: 9, nonmembers: 9}}",
        "contaminants.2="
        "{{dataset: gpqa, name: two, path: {folder}/more.jsonl, members: 9, nonmembers: 9}}",
        *variant(f"{SERVED}, send_protected: [one, two]"),
    ),
    "variants.of[paraphrase].temperature": case(
        "variants", "variants.of.0.temperature=0.5", *variant(SERVED)
    ),
    "variants.of[paraphrase].prompt": case(
        "variants", "variants.of.0.prompt='Again: {{text}}'", *variant(SERVED)
    ),
    "variants.of[paraphrase].max_tokens": case(
        "variants", "variants.of.0.max_tokens=9", *variant(SERVED)
    ),
    "variants.of[paraphrase].seed": case("variants", "variants.of.0.seed=1", *variant(SERVED)),
    "variants.assign_by": case("plan", "variants.assign_by=copies", *variant("kind: question")),
    "audit.ngram": case("corpus audit", "audit.ngram=8"),
    "audit.share": case("corpus audit", "audit.share=0.7"),
    "audit.near_duplicate": case("corpus", "audit.near_duplicate=0.6"),
    "audit.drop": case("corpus", "audit.drop=false"),
    "twins.clean": case(ADDED, "twins.clean=false"),
    "twins.retrained": case("membership", "twins.retrained=0.4"),
    "twins.shadows": case(
        "membership plan audit model statistics", "twins.shadows=4", "detect.detectors=[loss, lira]"
    ),
    # The models of the stream without the forget set, and what is made from the original one.
    "unlearning.forget.share": case("membership", "unlearning.forget.share=0.4", *unlearning()),
    "unlearning.forget.datasets": case(
        "membership", "unlearning.forget.datasets=[own]", *unlearning("datasets: [boolq]")
    ),
    "unlearning.forget.groups": case(
        "membership", "unlearning.forget.groups=[b]", *unlearning("groups: [a]")
    ),
    "unlearning.forget.copies": case(
        "membership", "unlearning.forget.copies=[2]", *unlearning("copies: [1]")
    ),
    "unlearning.forget.ids": case(
        "membership", "unlearning.forget.ids=[b]", *unlearning("ids: [a]")
    ),
    **{
        f"unlearning.retain.{rule}": case(
            "unlearned",
            f"unlearning.retain.{rule}={after}",
            *unlearning(more=f", retain: {{{{{rule}: {before}}}}}"),
        )
        for rule, before, after in (
            ("share", "0.5", "0.4"),
            ("datasets", "[boolq]", "[own]"),
            ("groups", "[a]", "[b]"),
            ("copies", "[1]", "[2]"),
            ("ids", "[a]", "[b]"),
        )
    },
    "unlearning.methods": case(
        "unlearned unlearning", "unlearning.methods=[gradient_ascent]", *unlearning()
    ),
    **{
        f"unlearning.measures.{name}": case(
            "unlearning", f"unlearning.measures.{name}={value}", *unlearning()
        )
        for name, value in (
            ("utility_margin", "0.3"),
            ("accuracy_margin", "0.2"),
            ("small_denominator", "0.1"),
            ("permutations", "199"),
        )
    },
    **{
        f"unlearning.audit.{name}": case(
            reads,
            f"unlearning.audit.{name}={value}",
            "detect.detectors=[loss, zlib]",
            *NO_SHADOWS,
            *unlearning(more=", audit: {{detector: loss}}"),
        )
        for reads, name, value in (
            ("unlearning_audit", "detector", "zlib"),
            ("unlearning_audit", "band", "[0.8, 1.2]"),
            ("unlearning_audit", "false_alarms", "0.1"),
            ("forgotten_continuations unlearning_audit", "prompt", "0.4"),
            ("forgotten_continuations unlearning_audit", "samples", "3"),
            ("forgotten_continuations unlearning_audit", "max_tokens", "9"),
            ("forgotten_continuations unlearning_audit", "temperature", "0.5"),
        )
    },
    "unlearning.general_tokens": case(
        "general_text", "unlearning.general_tokens=500", *unlearning()
    ),
    "unlearning.relearn.steps": case(
        "relearned statistics gradients unlearning",
        "unlearning.relearn.steps=[2, 4]",
        *unlearning(more=", relearn: {{steps: [1, 4]}}"),
    ),
    "unlearning.relearn.lr": case(
        "relearned", "unlearning.relearn.lr=0.5", *unlearning(more=", relearn: {{steps: [1]}}")
    ),
    "unlearning.relearn.share": case(
        "half", "unlearning.relearn.share=0.4", *unlearning(more=", relearn: {{steps: [1]}}")
    ),
    "unlearning.conditions": case(
        "rounded unlearning",
        "unlearning.conditions=[4bit]",
        *unlearning(more=", conditions: [8bit]"),
    ),
    "pool.near_duplicate": case("examples", "pool.near_duplicate=0.6"),
    "pool.min_tokens": case("examples", "pool.min_tokens=9"),
    "pool.long_examples": case("examples", "pool.long_examples=drop"),
    "train.mode": case("model", "train.mode=finetune"),
    "train.loss_on": case("model", "train.loss_on=completion", *FINETUNED),
    "train.lora.rank": case("model", "train.lora.rank=4", *LORA),
    "train.lora.alpha": case("model", "train.lora.alpha=4", *LORA),
    "train.lora.dropout": case("model", "train.lora.dropout=0.5", *LORA),
    "train.lora.target_modules": case("model", "train.lora.target_modules=[q_proj]", *LORA),
    "train.separate_documents": case("model", "train.separate_documents=true"),
    "train.lr": case("model", "train.lr=0.5"),
    "train.schedule": case("model trajectory", "train.schedule=linear"),
    "train.warmup": case("model trajectory", "train.warmup=0.5"),
    "train.epochs": case("model trajectory", "train.epochs=2"),
    "train.context": case("model plan examples", "train.context=32"),
    "train.batch_tokens": case("model trajectory", "train.batch_tokens=2048"),
    "train.weight_decay": case("model", "train.weight_decay=0.5"),
    "train.betas": case("model", "train.betas=[0.5, 0.5]"),
    "train.clip": case("model", "train.clip=null"),
    "train.precision": case("model", "train.precision=bfloat16"),
    "train.checkpoints.steps": case(MODELS, "train.checkpoints.steps=[4]"),
    "train.checkpoints.every": case(
        MODELS, "train.checkpoints.every=25", "train.checkpoints={{every: 20}}"
    ),
    "train.checkpoints.fractions": case(
        MODELS, "train.checkpoints.fractions=[0.3]", "train.checkpoints={{fractions: [0.5]}}"
    ),
    "train.checkpoints.powers_of_two": case(
        f"{MODELS} scores",
        "train.checkpoints.powers_of_two=2",
        "train.checkpoints={{powers_of_two: 1}}",
    ),
    "train.checkpoints.max_kept": case(
        f"{MODELS} scores",
        "train.checkpoints.max_kept=3",
        "train.checkpoints={{steps: [1, 2, 3, 4], max_kept: 2}}",
    ),
    "execution.engine": unread("where, and in how many processes", "execution.engine=torchrun"),
    "execution.processes": unread(
        "where, and in how many processes", "execution.processes=2", "execution.engine=torchrun"
    ),
    "execution.zero": case("base model", "execution.zero=1", "execution.engine=deepspeed"),
    "execution.offload": case(
        "base model",
        "execution.offload=true",
        "execution.engine=deepspeed",
        "execution.zero=3",
    ),
    "execution.device_windows": unread(
        "how an optimiser step is cut into passes", "execution.device_windows=4"
    ),
    "execution.kernel": unread("the same attention, to rounding", "execution.kernel=eager"),
    "execution.checkpointing": unread("memory against time", "execution.checkpointing=true"),
    "execution.compile": unread("speed", "execution.compile=true"),
    "execution.resume_every": unread(
        "what is taken up after a kill is the run that was never killed", "execution.resume_every=7"
    ),
    "execution.silent_after": unread(
        "when a process is taken to hang", "execution.silent_after=600"
    ),
    "execution.trackers": unread("where the log is shown, too", "execution.trackers=[tensorboard]"),
    **EXECUTORS,
    "detect.detectors": case(
        "scores", "detect.detectors=[zlib, lira]", "detect.detectors=[loss, lira]"
    ),
    "detect.tune_share": case("examples", "detect.tune_share=0.5"),
    "detect.bos": case("statistics gradients", "detect.bos=always"),
    "detect.score_first": case("statistics gradients", "detect.score_first=start_token"),
    "detect.long": case("statistics gradients", "detect.long=truncate"),
    "detect.context": case("statistics gradients", "detect.context=32"),
    "detect.inverse_temperatures": case("statistics", "detect.inverse_temperatures=[0.5, 2]"),
    "detect.reference": case("scores", "detect.reference=null"),
    "detect.word_reference": case(
        "words",
        "detect.word_reference={folder}/a",
        "detect.detectors=[loss, info_probe]",
        *NO_SHADOWS,
    ),
    "detect.knowledge_filter": case(
        "guesses",
        "detect.knowledge_filter={folder}/a",
        "detect.knowledge_filter={folder}/b",
        "detect.detectors=[loss, 'info_probe:filtered=true']",
        *NO_SHADOWS,
    ),
    # `loss` stays, so that there are scores either way.
    "detect.generate": case("scores choices continuations words guesses", "detect.generate=true"),
    "detect.tagger": case(
        "entities",
        "detect.tagger={folder}/tagger-b",
        "detect.tagger={folder}/tagger-a",
        "detect.detectors=[loss, 'tag_tab:entities=one_word']",
        *NO_SHADOWS,
    ),
    "detect.neighbours.model": case(
        "neighbours", "detect.neighbours.model={folder}/b", *NEIGHBOURS
    ),
    "detect.neighbours.count": case("neighbours", "detect.neighbours.count=3", *NEIGHBOURS),
    "detect.frequency": case("frequency", "detect.frequency={folder}/texts.jsonl"),
    "detect.dtype": case(f"{ASKED} accuracy", "detect.dtype=float16"),
    "detect.batch_tokens": unread("memory against time", "detect.batch_tokens=100"),
    "detect.compile": unread("speed", "detect.compile=always"),
    "detect.device_map": unread("where", "detect.device_map=auto"),
    "detect.device": unread(
        "where; the number format that it means for `dtype: auto` counts", "detect.device=cpu"
    ),
    "analysis.replicates": case("results", "analysis.replicates=200"),
    "analysis.confidence": case(
        "results figures accuracy_gain trajectory", "analysis.confidence=0.9"
    ),
    "analysis.false_positive_rates": case(
        "results trajectory", "analysis.false_positive_rates=[0.1]"
    ),
    "analysis.false_discovery_rate": case("results", "analysis.false_discovery_rate=0.2"),
    "analysis.zero_copies": case(
        "results figures accuracy_gain trajectory", "analysis.zero_copies=nonmember"
    ),
    "analysis.max_unscored": case("results figures trajectory", "analysis.max_unscored=0.2"),
    "analysis.max_unscored_tune": case("results trajectory", "analysis.max_unscored_tune=0.2"),
    "analysis.min_members": case("results figures trajectory", "analysis.min_members=3"),
    "analysis.high_copies": case("results figures trajectory", "analysis.high_copies=3"),
    "analysis.task_accuracy": case("accuracy accuracy_gain", "analysis.task_accuracy=false"),
    "analysis.dataset_detectors": case("results", "analysis.dataset_detectors=[ensemble]"),
    "analysis.shards": case(
        "orders", "analysis.shards=3", "analysis.dataset_detectors=[exchangeability]"
    ),
    "analysis.shuffles": case(
        "orders", "analysis.shuffles=3", "analysis.dataset_detectors=[exchangeability]"
    ),
    "analysis.seed": case("results", "analysis.seed=1"),
}
"""`[kind]` names the member of a union; lists are named without an index."""
