"""Sentences for the findings of a preflight."""

from tui.text.translate import tr_noop
from tui.text.words import Words, as_size

KEYS: dict[str, Words] = {
    "key_misspelt": Words(
        tr_noop("There is no setting {key}; {nearest} is probably meant."),
        tr_noop("LLaMA-Factory ends at once on a key that it does not know: correct the name."),
    ),
    "key_unknown": Words(
        tr_noop("There is no setting {key}."),
        tr_noop("LLaMA-Factory ends at once on a key that it does not know: remove the line."),
    ),
    "key_of_other_release": Words(
        tr_noop("This LLaMA-Factory does not take {key}; it is known in: {releases}."),
        tr_noop("Remove the line, or use an environment with such a release (--env)."),
    ),
    "number_as_text": Words(
        tr_noop("{key} is text ({text}) where a number is needed."),
        tr_noop("Remove the quotes, and write it as 0.0001, 1e-4 or 1.0e-4."),
    ),
    "flag_as_text": Words(
        tr_noop("{key} is text ({text}), and any text switches it on, also no or false."),
        tr_noop("Write true or false without quotes."),
    ),
    "word_became_flag": Words(
        tr_noop("YAML reads the unquoted {word} of {key} as true or false, and the run ends at once."),
        tr_noop('Put the word in quotes: {key}: "{word}".'),
    ),
    "json_config": Words(
        tr_noop("{subject} is JSON, which LLaMA-Factory 0.9.5 cannot read; it gets a YAML copy.")
    ),
    "json_refused": Words(
        tr_noop("LLaMA-Factory 0.9.5 cannot read a JSON config, and this command hands it {subject} itself."),
        tr_noop("Start it with `llamaherd start {subject}`: the run then gets a YAML copy."),
    ),
    "value_wrong": Words(tr_noop("{key} cannot be {value}."), tr_noop("Possible: {allowed}.")),
    "value_needed": Words(
        tr_noop("{key} is needed with {because}, and is not set."), tr_noop("Set it, or leave out {because}.")
    ),
    "values_conflict": Words(
        tr_noop("{first} and {second} cannot be used together; the run ends at once."),
        tr_noop("Leave out one of the two."),
    ),
    "nothing_to_do": Words(
        tr_noop("The config asks for no training, evaluation or prediction: the run would end with nothing."),
        tr_noop("Set do_train: true."),
    ),
}

PLAN: dict[str, Words] = {
    "eval_batch_default": Words(
        tr_noop(
            "An evaluation takes {eval} samples at once, the default, while training takes {train}:"
            " memory often runs out at the first one."
        ),
        tr_noop("Set per_device_eval_batch_size: {train}."),
    ),
    "eval_data_unused": Words(
        tr_noop("val_size: {val_size} takes samples away from the training, but no evaluation is asked for."),
        tr_noop("Set eval_strategy and eval_steps, or leave val_size out."),
    ),
    "eval_never": Words(
        tr_noop(
            "With {steps} steps, the evaluation every {every} steps never comes; the one at the end does."
        ),
        tr_noop("Lower eval_steps if you want to see it sooner."),
    ),
    "save_never": Words(
        tr_noop(
            "With {steps} steps, no checkpoint is written before the end: one comes every {every} steps."
        ),
        tr_noop("If the run breaks off, nothing can be continued. Lower save_steps."),
    ),
    "packing_fills": Words(
        tr_noop(
            "Samples are packed into sequences of {cutoff} tokens each: fewer steps, and every batch needs"
            " the memory of a full one."
        )
    ),
    "zero3_quantized": Words(
        tr_noop(
            "A model quantised to 4 bit is sharded by ZeRO-3: that needs bitsandbytes 0.43 and can fail."
        ),
        tr_noop("Try a few steps first (--trial 5), or use ZeRO-2."),
    ),
    "zero3_no_gather": Words(
        tr_noop(
            "{subject} does not gather the weights at a save: no model file that can be loaded is written."
        ),
        tr_noop("Set stage3_gather_16bit_weights_on_model_save: true in zero_optimization."),
    ),
    "deepspeed_needs_torchrun": Words(
        tr_noop("DeepSpeed is asked for, and a training on one card runs without torchrun: it ends at once."),
        tr_noop("Write FORCE_TORCHRUN=1 before the command."),
    ),
    "deepspeed_mismatch": Words(
        tr_noop("{subject} sets {key} to {fixed}, the training config to {config}; the run ends at once."),
        tr_noop('Write "auto" in the DeepSpeed file.'),
    ),
    "launch_by_torchrun": Words(
        tr_noop("LLaMA-Factory will start torchrun with {processes} processes on {cards} cards.")
    ),
    "torchrun_without_card": Words(
        tr_noop("torchrun is asked for without a card, so it would start no process and fail."),
        tr_noop("Set NPROC_PER_NODE, or leave out FORCE_TORCHRUN."),
    ),
    "process_count_unclear": Words(
        tr_noop("NPROC_PER_NODE is {value}: how many processes will train cannot be told.")
    ),
    "processes_beyond_cards": Words(
        tr_noop("{processes} processes are to train on {cards} cards; each needs a card of its own."),
        tr_noop("Set NPROC_PER_NODE to the number of cards, or leave it out."),
    ),
    "no_card": Words(
        tr_noop("No card is visible here: it would train on the CPU, very slowly."),
        tr_noop("Start the instance with a GPU. To train on the CPU on purpose, set use_cpu: true."),
    ),
    "no_bf16": Words(
        tr_noop("{card} does not compute in bf16: {key} fails or is very slow on it."),
        tr_noop("Set fp16: true and {key}: false."),
    ),
    "full_precision": Words(
        tr_noop(
            "Neither bf16 nor fp16 is set: the training runs in 32 bit and needs about twice the memory."
        ),
        tr_noop("Set bf16: true (fp16: true on a V100 or T4)."),
    ),
}

FILES: dict[str, Words] = {
    "model_missing": Words(
        tr_noop("There is no model folder {subject}."),
        tr_noop("Correct model_name_or_path; a relative path starts in the folder of the run (--cwd)."),
    ),
    "model_unreadable": Words(
        tr_noop("{file} in {subject} cannot be read ({problem})."), tr_noop("Download the model again.")
    ),
    "weights_missing": Words(
        tr_noop("{subject} holds no weights."), tr_noop("Download the model again, or name its folder.")
    ),
    "shards_missing": Words(
        tr_noop("{count} weight files are missing in {subject}, the first is {first}."),
        tr_noop("Download the model again: what is there is kept."),
    ),
    "weights_truncated": Words(
        tr_noop("{count} weight files in {subject} end too early: {files}."),
        tr_noop("The download broke off, or the disk was full. Remove them and download again."),
    ),
    "tokenizer_missing": Words(
        tr_noop("{subject} holds no tokenizer."), tr_noop("Download all files of the model.")
    ),
    "model_too_new": Words(
        tr_noop("{subject} was saved by transformers 5 and cannot be loaded by {transformers}."),
        tr_noop("Use the original model, or an environment with transformers 5."),
    ),
    "model_not_cached": Words(
        tr_noop(
            "{name} is not on this instance: {size} (by its name) will be downloaded to {cache}, {free} free."
        ),
        tr_noop(
            "Download it before, without a GPU if you can, and to the data disk:"
            " HF_HOME or MODELSCOPE_CACHE say where."
        ),
        {"size": as_size, "free": as_size},
    ),
    "model_not_cached_offline": Words(
        tr_noop("{name} is not in {cache}, and downloads are switched off (HF_HUB_OFFLINE)."),
        tr_noop("Download it first, or name the model's folder."),
    ),
    "model_half_downloaded": Words(
        tr_noop("A download of {name} to {cache} was begun and not finished; the run would go on with it."),
        tr_noop("Finish it before: paid GPU time passes meanwhile."),
    ),
    "download_too_large": Words(
        tr_noop("{name} has about {size}, and {cache} has {free} free."),
        tr_noop("Let HF_HOME (or MODELSCOPE_CACHE) name a folder on a larger disk."),
        {"size": as_size, "free": as_size},
    ),
    "adapter_missing": Words(
        tr_noop("There is no adapter folder {subject}."), tr_noop("Correct adapter_name_or_path.")
    ),
    "adapter_unreadable": Words(
        tr_noop("{subject} is no adapter: adapter_config.json cannot be read ({problem})."),
        tr_noop("Name a folder that a LoRA training wrote."),
    ),
    "dataset_info_missing": Words(
        tr_noop("There is no {subject}."),
        tr_noop(
            "Set dataset_dir to the folder that holds dataset_info.json;"
            " a relative path starts in the folder of the run (--cwd)."
        ),
    ),
    "dataset_info_unreadable": Words(
        tr_noop("{subject} cannot be read ({problem}, line {line})."), tr_noop("Correct the file.")
    ),
    "dataset_misspelt": Words(
        tr_noop("{file} defines no data set {subject}; {nearest} is probably meant."),
        tr_noop("Correct the name, or define it there."),
    ),
    "dataset_undefined": Words(
        tr_noop("{file} defines no data set {subject}."), tr_noop("Define it there, or correct the name.")
    ),
    "dataset_malformed": Words(
        tr_noop("The entry of {subject} in {file} names no file and no hub."), tr_noop("Give it a file_name.")
    ),
    "dataset_file_missing": Words(
        tr_noop("The file of the data set {subject} is not there: {path}"),
        tr_noop("file_name is relative to the folder of dataset_info.json."),
    ),
    "dataset_empty": Words(tr_noop("The file of the data set {subject} is empty: {path}")),
    "dataset_file_type": Words(
        tr_noop("The files of the data set {subject} are of a type that is not taken, or of several: {path}"),
        tr_noop("Possible: json, jsonl, csv, parquet, arrow, txt; one type in a folder."),
    ),
    "dataset_not_for_stage": Words(
        tr_noop(
            "The data set {subject} does not fit stage {stage}: only rm and dpo take one with ranking: true."
        ),
        tr_noop("Choose another data set or stage, or correct ranking in dataset_info.json."),
    ),
    "template_misspelt": Words(
        tr_noop("There is no template {template}; {nearest} is probably meant."),
        tr_noop("A wrong template spoils a training without an error: look it up for your model."),
    ),
    "template_unknown": Words(
        tr_noop("There is no template {template} in this LLaMA-Factory."),
        tr_noop("Look up the template of your model, or use an environment with a newer LLaMA-Factory."),
    ),
    "template_unset": Words(
        tr_noop("No template is set: the one of the tokenizer is guessed at."),
        tr_noop("Set the template that belongs to your model, and use the same one for answers later."),
    ),
    "deepspeed_missing": Words(
        tr_noop("There is no DeepSpeed file {subject}."),
        tr_noop("A relative path starts in the folder of the run (--cwd)."),
    ),
    "deepspeed_unreadable": Words(
        tr_noop("The DeepSpeed file {subject} cannot be read ({problem}, line {line})."),
        tr_noop("Correct the file; JSON takes no comments and no comma at an end."),
    ),
}

OUTPUT: dict[str, Words] = {
    "output_unwritable": Words(
        tr_noop("Nothing can be written to {subject}."), tr_noop("Choose another output_dir.")
    ),
    "output_in_use": Words(
        tr_noop("Job {job} is writing to {subject} right now."),
        tr_noop("Two runs in one folder destroy each other's checkpoints: choose another output_dir."),
    ),
    "will_resume": Words(
        tr_noop("The run will continue from step {step} in {subject}."),
        tr_noop("To begin anew, choose another output_dir."),
    ),
    "will_overwrite": Words(tr_noop("Results in {subject} will be overwritten.")),
    "stale_checkpoints": Words(
        tr_noop(
            "{subject} keeps {count} old checkpoints up to step {step}: overwriting does not remove them,"
            " and a later run would continue from the highest."
        ),
        tr_noop("Choose another output_dir, or move them away."),
    ),
    "output_refused": Words(
        tr_noop("{subject} holds final weights and no checkpoint: LLaMA-Factory refuses to start there."),
        tr_noop("Choose another output_dir, or set overwrite_output_dir: true."),
    ),
    "output_finished": Words(
        tr_noop(
            "{subject} holds a run that came to its end at step {step}. Without more epochs or steps it"
            " would train one step at most, and write new results over the old ones."
        ),
        tr_noop("Choose another output_dir."),
    ),
    "output_not_resumed": Words(
        tr_noop("{subject} holds an earlier run, and this stage cannot continue one: it begins anew there."),
        tr_noop("Choose another output_dir."),
    ),
    "nothing_left_to_train": Words(
        tr_noop(
            "{subject} is at step {step} already and max_steps is {max_steps}: it would train one step at"
            " most, and write new results over the old ones."
        ),
        tr_noop("Choose another output_dir, or raise max_steps."),
    ),
    "checkpoint_incomplete": Words(
        tr_noop(
            "checkpoint-{step} in {subject} is not complete, and LLaMA-Factory would continue from it and"
            " fail. The last complete one: {before}."
        ),
        tr_noop("Move it away, or choose another output_dir."),
    ),
    "resume_missing": Words(
        tr_noop("There is no checkpoint {subject} to continue from."),
        tr_noop("Correct resume_from_checkpoint."),
    ),
    "resume_incomplete": Words(
        tr_noop("{subject} is no complete checkpoint: it has no trainer_state.json that can be read."),
        tr_noop("Name an earlier one."),
    ),
}

PACKAGES: dict[str, Words] = {
    "environment_missing": Words(
        tr_noop("No environment with LLaMA-Factory was found, so nothing of it could be checked."),
        tr_noop("Name it with --env, or in the settings."),
    ),
    "package_missing": Words(
        tr_noop(
            "{because} needs the package {requirement}, which is not installed in the training environment."
        ),
        tr_noop("See what installing it would change, and stop if torch is among it: {dry_run}"),
    ),
    "package_out_of_range": Words(
        tr_noop("{because} needs {requirement}, and {version} is installed."),
        tr_noop("See what another version would change, and stop if torch is among it: {dry_run}"),
    ),
    "install_replaces_torch": Words(
        tr_noop("{subject} asks for one version of torch: installing it would replace torch {torch}."),
        tr_noop("Use an environment of its own for it."),
    ),
    "flash_attention_missing": Words(
        tr_noop("flash_attn: fa2 is set and the package is not installed: the run goes on without it."),
        tr_noop("flash_attn: auto takes what there is."),
    ),
}

_RANGE = {"low": as_size, "high": as_size, "free": as_size}

MACHINE: dict[str, Words] = {
    "weights_do_not_fit": Words(
        tr_noop("The weights alone need {low} to {high} on {card}, and {free} are free."),
        tr_noop("Use QLoRA, ZeRO-3 over several cards, a smaller model, or a larger card."),
        _RANGE,
    ),
    "training_does_not_fit": Words(
        tr_noop("The training will probably need {low} to {high} on {card}, and {free} are free."),
        tr_noop("Halve the batch and double the accumulation, or shorten cutoff_len; try it with --trial 5."),
        _RANGE,
    ),
    "training_may_not_fit": Words(
        tr_noop("The training needs {low} to {high} on {card}, and {free} are free: it may just not fit."),
        tr_noop("Try it with --trial 5 --trial-all, or halve the batch and double the accumulation."),
        _RANGE,
    ),
    "card_failing": Words(
        tr_noop("GPU {index} does not answer."),
        tr_noop("Choose others with --gpus, or restart the instance."),
    ),
    "card_in_use": Words(
        tr_noop("GPU {index} is used by {jobs}: {free} of {total} are free."),
        tr_noop("Wait until it ends, stop it, or choose another card with --gpus."),
        {"free": as_size, "total": as_size},
    ),
    "card_memory_held": Words(
        tr_noop("GPU {index} has {used} in use already, by {owners}: {free} are free."),
        tr_noop("End what is not needed: a Chat page, a notebook, a service."),
        {"used": as_size, "free": as_size},
    ),
    "card_memory_hidden": Words(
        tr_noop("GPU {index} has {used} in use that no process here explains: {free} are free."),
        tr_noop("It lies outside this container; if it stays, only a restart of the instance frees it."),
        {"used": as_size, "free": as_size},
    ),
    "shm_too_small": Words(
        tr_noop(
            "The shared memory (/dev/shm) has only {total} for {workers} data loaders:"
            " they may end with a bus error."
        ),
        tr_noop("Set dataloader_num_workers: 0."),
        {"total": as_size},
    ),
    "too_many_workers": Words(
        tr_noop("{workers} processes for the tokenizer share {cpus} CPUs: they slow each other down."),
        tr_noop("Lower preprocessing_num_workers."),
    ),
    "workers_need_memory": Words(
        tr_noop(
            "{workers} workers need about {needed} of memory, and {free} are free: the kernel may end them."
        ),
        tr_noop("Lower preprocessing_num_workers and dataloader_num_workers."),
        {"needed": as_size, "free": as_size},
    ),
    "offload_needs_memory": Words(
        tr_noop("Offloading puts about {needed} into the container's memory, and {free} are free."),
        tr_noop("Use an instance with more memory, or offload less."),
        {"needed": as_size, "free": as_size},
    ),
    "disk_too_small": Words(
        tr_noop("{checkpoints} checkpoints need about {needed}, and the disk of {subject} has {free} free."),
        tr_noop("Set save_total_limit or save_only_model, make room, or choose a larger disk."),
        {"needed": as_size, "free": as_size},
    ),
    "port_taken": Words(
        tr_noop("Port {port} of MASTER_PORT is taken by another program."),
        tr_noop("Leave MASTER_PORT out: a free port is found."),
    ),
    "service_port_taken": Words(
        tr_noop("Port {port} ({subject}) is taken: the service would end once its model is loaded."),
        tr_noop("Choose another port, or end the service that has it."),
    ),
    "space_in_path": Words(
        tr_noop("There is a space in {subject}, and LLaMA-Factory tears its torchrun command apart there."),
        tr_noop("Move or rename it; a link without spaces will do."),
    ),
}

PREFLIGHT: dict[str, Words] = {**KEYS, **PLAN, **FILES, **OUTPUT, **PACKAGES, **MACHINE}
