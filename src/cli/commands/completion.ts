// `stagedoor completion`: prints the script with which a shell completes commands and options, made from the command table.
// The script completes no names of templates and instances: each Tab would need a request to a gateway.

import { type Command, type OptionDefinition, optionFlag, optionsOf } from '../command.ts';
import { UsageError } from '../failures.ts';

/** `table` is a function because the table contains this row, too. */
export const completionOf = (table: () => readonly Command[]): Command => ({
  name: 'completion',
  positionals: '<bash|zsh|fish>',
  summary: 'Print the completion script of a shell, for its start-up files',
  options: {},
  examples: [
    'completion bash > ~/.local/share/bash-completion/completions/stagedoor',
    'completion zsh > ~/.zfunc/_stagedoor',
    'completion fish > ~/.config/fish/completions/stagedoor.fish',
  ],
  run: async (input, terminal) => {
    const shell = input.positional(0);
    const script = COMPLETIONS.get(shell);
    if (script === undefined) {
      throw new UsageError(`unknown shell "${shell}"; shells are ${[...COMPLETIONS.keys()].join(', ')}`);
    }
    const alone = table().flatMap((command) => (command.alias ? [{ ...command, name: command.alias }] : []));
    terminal.print(script([...table(), ...alone]));
    return 0;
  },
});

const COMPLETIONS: ReadonlyMap<string, (commands: readonly Command[]) => string> = new Map([
  ['bash', bashScript],
  ['zsh', zshScript],
  ['fish', fishScript],
]);

interface Completion {
  readonly word: string;
  readonly about: string;
}

/** The candidates after certain words; `isOpen`: and after any words behind these. */
interface CompletionRule {
  readonly before: string;
  readonly isOpen: boolean;
  readonly candidates: readonly Completion[];
}

/** The rules: first for the groups and commands, then for the options of each command. */
function rulesOf(commands: readonly Command[]): readonly CompletionRule[] {
  const single = commands.filter(({ name }) => !name.includes(' '));
  const groups = groupsOf(commands);
  const top = [
    ...[...groups.keys()].map((word) => ({ word, about: `commands of ${word}` })),
    ...single.map(asCompletion),
    { word: '--help', about: 'show help' },
    { word: '--version', about: 'show the version' },
  ];
  return [
    { before: '', isOpen: false, candidates: top },
    ...[...groups].map(([before, candidates]) => ({ before, isOpen: false, candidates })),
    ...commands.map((command) => ({
      before: command.name,
      isOpen: true,
      candidates: [
        ...optionsOf(command).flatMap((each) =>
          namesOf(each).map((word) => ({ word, about: short(each.description) })),
        ),
        { word: '--help', about: 'show help' },
      ],
    })),
  ];
}

/** The words after each group. */
function groupsOf(commands: readonly Command[]): ReadonlyMap<string, readonly Completion[]> {
  const groups = new Map<string, readonly Completion[]>();
  for (const command of commands) {
    const [group = '', verb] = command.name.split(' ');
    if (verb !== undefined) groups.set(group, [...(groups.get(group) ?? []), asCompletion(command)]);
  }
  return groups;
}

function asCompletion({ name, summary }: Command): Completion {
  return { word: name.replace(/^.* /, ''), about: short(summary) };
}

function namesOf(option: OptionDefinition): readonly string[] {
  return [optionFlag(option), ...(option.short === undefined ? [] : [`-${option.short}`])];
}

function flagsWithValue(commands: readonly Command[]): readonly string[] {
  const options = commands.flatMap(optionsOf).filter(({ flags }) => flags.includes(' '));
  return [...new Set(options.flatMap(namesOf))];
}

function short(text: string): string {
  return text.replace(/[;,:(].*$/s, '').trim();
}

// --- bash --------------------------------------------------------------------------------------------------

function bashScript(commands: readonly Command[]): string {
  const ruleLine = ({ before, isOpen, candidates }: CompletionRule) => {
    const pattern = isOpen ? `${quoted(before)}|${quoted(`${before} `)}*` : quoted(before);
    return `    ${pattern}) words=${quoted(candidates.map(({ word }) => word).join(' '))} ;;`;
  };
  return [
    '# Completion of stagedoor in bash.',
    '_stagedoor() {',
    `  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"`,
    `  local before="\${COMP_WORDS[*]:1:$((COMP_CWORD-1))}" words=""`,
    '  case "$before" in',
    ...rulesOf(commands).map(ruleLine),
    '  esac',
    '  # A value: the names of files are completed.',
    `  case "$previous" in ${flagsWithValue(commands).join('|')}) words="" ;; esac`,
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    '}',
    'complete -o default -F _stagedoor stagedoor',
  ].join('\n');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

// --- zsh, which can use the script of bash -----------------------------------------------------------------

function zshScript(commands: readonly Command[]): string {
  return [
    '#compdef stagedoor',
    'autoload -Uz bashcompinit && bashcompinit',
    bashScript(commands),
    '# The completion for which this file was read as a function.',
    'if [ "$funcstack[1]" = "_stagedoor" ]; then _bash_complete -o default -F _stagedoor; fi',
  ].join('\n');
}

// --- fish --------------------------------------------------------------------------------------------------

function fishScript(commands: readonly Command[]): string {
  const ruleLine = ({ before, isOpen, candidates }: CompletionRule) => {
    const pattern = isOpen ? `${fishQuoted(before)} ${fishQuoted(`${before} *`)}` : fishQuoted(before);
    const words = candidates.map(({ word, about }) => fishQuoted(`${word}\t${about}`)).join(' ');
    // fish also offers candidates that only contain the letters of an argument.
    const condition = isOpen ? "string match -q -- '-*' (commandline -ct); and " : '';
    return `    case ${pattern}\n      ${condition}string join \\n -- ${words}`;
  };
  return [
    '# Completion of stagedoor in fish.',
    'function __stagedoor_words',
    '  set -l words (commandline -opc)',
    '  set -e words[1]',
    '  switch "$words"',
    ...rulesOf(commands).map(ruleLine),
    '  end',
    'end',
    '# A value: the names of files are completed.',
    'function __stagedoor_at_value',
    `  contains -- (commandline -opc)[-1] ${flagsWithValue(commands).join(' ')}`,
    "  or string match -q -- '--*=*' (commandline -ct)",
    'end',
    'complete -c stagedoor -f',
    'complete -c stagedoor -n __stagedoor_at_value -F',
    "complete -c stagedoor -n 'not __stagedoor_at_value' -a '(__stagedoor_words)'",
  ].join('\n');
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
