mod jsonl;
mod recorder;
mod strict;
mod view;
