// `stagedoor completion`: prints the script with which a shell completes commands and options, made from the command table.
// The script completes no names of templates and instances: each Tab would need a request to a gateway.

import { type Command, type CommandDefinition, optionFlag } from '../command.ts';
import { UsageError } from '../failures.ts';

/** `table` is a function because the table contains this row, too. */
export const completionOf = (table: () => readonly Command[]): CommandDefinition => ({
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

interface CompletionRule {
  readonly before: string;
  readonly candidates: readonly Completion[];
}

function branches(commands: readonly Command[]): readonly CompletionRule[] {
  const { single = [], ...groups } = Object.groupBy(commands, ({ name }) =>
    name.includes(' ') ? name.replace(/ .*$/, '') : 'single',
  );
  const top = [
    ...Object.keys(groups).map((word) => ({ word, about: `commands of ${word}` })),
    ...single.map(asCompletion),
    { word: '--help', about: 'show help' },
    { word: '--version', about: 'show the version' },
  ];
  return [
    { before: '', candidates: top },
    ...Object.entries(groups).map(([before, members = []]) => ({
      before,
      candidates: members.map(asCompletion),
    })),
  ];
}

/** The options of each command. */
function leaves(commands: readonly Command[]): readonly CompletionRule[] {
  return commands.map((command) => ({
    before: command.name,
    candidates: [
      ...command.options.map((option) => ({ word: optionFlag(option), about: short(option.description) })),
      { word: '--help', about: 'show help' },
    ],
  }));
}

function asCompletion({ name, summary }: Command): Completion {
  return { word: name.replace(/^.* /, ''), about: short(summary) };
}

function flagsWithValue(commands: readonly Command[]): readonly string[] {
  const options = commands.flatMap((command) => command.options).filter(({ flags }) => flags.includes(' '));
  const names = options.flatMap((option) => [
    optionFlag(option),
    ...(option.short === undefined ? [] : [`-${option.short}`]),
  ]);
  return [...new Set(names)];
}

function short(text: string): string {
  return text.replace(/[;,:(].*$/s, '').trim();
}

// --- bash ----------------------------------------------------------------------------------------------------------

function bashScript(commands: readonly Command[]): string {
  const words = ({ candidates }: CompletionRule) => quoted(candidates.map(({ word }) => word).join(' '));
  return [
    '# Completion of stagedoor in bash.',
    '_stagedoor() {',
    `  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"`,
    `  local before="\${COMP_WORDS[*]:1:$((COMP_CWORD-1))}" words=""`,
    '  case "$before" in',
    ...branches(commands).map((rule) => `    ${quoted(rule.before)}) words=${words(rule)} ;;`),
    ...leaves(commands).map(
      (rule) => `    ${quoted(rule.before)}|${quoted(`${rule.before} `)}*) words=${words(rule)} ;;`,
    ),
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

// --- zsh, which can use the script of bash ---------------------------------------------------------------------------

function zshScript(commands: readonly Command[]): string {
  return [
    '#compdef stagedoor',
    'autoload -Uz bashcompinit && bashcompinit',
    bashScript(commands),
    '# The completion for which this file was read as a function.',
    'if [ "$funcstack[1]" = "_stagedoor" ]; then _bash_complete -o default -F _stagedoor; fi',
  ].join('\n');
}

// --- fish ----------------------------------------------------------------------------------------------------------

function fishScript(commands: readonly Command[]): string {
  const rule = (condition: string, rest: string) =>
    `complete -c stagedoor -n ${fishQuoted(condition)} ${rest}`;
  return [
    '# Completion of stagedoor in fish.',
    'function __stagedoor_before',
    '  set -l words (commandline -opc)',
    '  set -e words[1]',
    '  echo "$words"',
    'end',
    'function __stagedoor_at',
    '  test (__stagedoor_before) = "$argv"',
    'end',
    'function __stagedoor_in',
    '  string match -q -- "$argv *" (__stagedoor_before)" "',
    'end',
    'complete -c stagedoor -f',
    ...branches(commands).flatMap(({ before, candidates }) =>
      candidates.map(({ word, about }) =>
        rule(`__stagedoor_at ${fishQuoted(before)}`, `-a ${fishQuoted(word)} -d ${fishQuoted(about)}`),
      ),
    ),
    ...commands.flatMap((command) => {
      const condition = `__stagedoor_in ${command.name}`;
      return command.options.map((option) => {
        const letter = option.short === undefined ? '' : ` -s ${option.short}`;
        const value = option.flags.includes(' ') ? ' -r -F' : '';
        const long = optionFlag(option).slice(2);
        return rule(condition, `-l ${long}${letter}${value} -d ${fishQuoted(short(option.description))}`);
      });
    }),
  ].join('\n');
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
