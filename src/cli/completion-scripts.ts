// The scripts that complete this program's commands and options in a shell, made from the table of commands. They name no
// template and no instance: those would have to be asked for at every Tab.

import { type CommandDefinition, optionFlag } from './command.ts';

/** By shell. */
export const COMPLETIONS: ReadonlyMap<string, (commands: readonly CommandDefinition[]) => string> = new Map([
  ['bash', bashScript],
  ['zsh', zshScript],
  ['fish', fishScript],
]);

/** One word, and what it is about. */
interface Candidate {
  readonly word: string;
  readonly about: string;
}

/** Words that come before, separated by spaces, and what may follow them. */
interface Place {
  readonly before: string;
  readonly candidates: readonly Candidate[];
}

/** What may follow the program's name, and the name of each group. */
function branches(commands: readonly CommandDefinition[]): readonly Place[] {
  const groups = [
    ...new Set(commands.filter(({ name }) => name.includes(' ')).map(({ name }) => groupOf(name))),
  ];
  const single = commands.filter(({ name }) => !name.includes(' ')).map(asCandidate);
  const top = [
    ...groups.map((word) => ({ word, about: `commands of ${word}` })),
    ...single,
    { word: '--help', about: 'show help' },
    { word: '--version', about: 'show the version' },
  ];
  return [
    { before: '', candidates: top },
    ...groups.map((group) => ({
      before: group,
      candidates: commands.filter(({ name }) => name.startsWith(`${group} `)).map(asCandidate),
    })),
  ];
}

/** What may follow a command: its options, and its argument where that is one of a few words. */
function leaves(commands: readonly CommandDefinition[]): readonly Place[] {
  return commands.map(({ name, positionals, options }) => {
    const [, choices = ''] = /^<(\w+(?:\|\w+)+)>$/.exec(positionals) ?? [];
    return {
      before: name,
      candidates: [
        ...choices.split('|').flatMap((word) => (word === '' ? [] : [{ word, about: '' }])),
        ...options.map((option) => ({ word: optionFlag(option), about: option.description })),
        { word: '--help', about: 'show help' },
      ],
    };
  });
}

function asCandidate({ name, summary }: CommandDefinition): Candidate {
  return { word: name.replace(/^.* /, ''), about: summary };
}

function groupOf(name: string): string {
  return name.replace(/ .*$/, '');
}

/** Options after which a value follows, by either name. */
function flagsWithValue(commands: readonly CommandDefinition[]): readonly string[] {
  const options = commands.flatMap((command) => command.options).filter(({ flags }) => flags.includes(' '));
  const names = options.flatMap((option) => [
    optionFlag(option),
    ...(option.short === undefined ? [] : [`-${option.short}`]),
  ]);
  return [...new Set(names)];
}

function built(commands: readonly CommandDefinition[]): readonly CommandDefinition[] {
  return commands.map(({ options, summary, ...command }) => ({
    ...command,
    summary: short(summary),
    options: options.map((option) => ({ ...option, description: short(option.description) })),
  }));
}

/** Shells show it in one line. */
function short(text: string): string {
  return text.replace(/[;,:(].*$/s, '').trim();
}

// --- bash ----------------------------------------------------------------------------------------------------------

function bashScript(commands: readonly CommandDefinition[]): string {
  const known = built(commands);
  const words = ({ candidates }: Place) => quoted(candidates.map(({ word }) => word).join(' '));
  return [
    '# Completion of stagedoor in bash.',
    '_stagedoor() {',
    `  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"`,
    `  local before="\${COMP_WORDS[*]:1:COMP_CWORD-1}" words=""`,
    '  case "$before" in',
    ...branches(known).map((place) => `    ${quoted(place.before)}) words=${words(place)} ;;`),
    ...leaves(known).map(
      (place) => `    ${quoted(place.before)}|${quoted(`${place.before} `)}*) words=${words(place)} ;;`,
    ),
    '  esac',
    '  # A value: the names of files are completed.',
    `  case "$previous" in ${flagsWithValue(known).join('|')}) words="" ;; esac`,
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    '}',
    'complete -o default -F _stagedoor stagedoor',
  ].join('\n');
}

// --- zsh -----------------------------------------------------------------------------------------------------------

function zshScript(commands: readonly CommandDefinition[]): string {
  const known = built(commands);
  const described = ({ candidates }: Place) =>
    candidates.map(({ word, about }) => quoted(`${word}:${about}`)).join(' ');
  return [
    '#compdef stagedoor',
    '# Completion of stagedoor in zsh.',
    '_stagedoor() {',
    '  local -a candidates',
    `  local before="\${(j: :)words[2,CURRENT-1]}"`,
    '  # A value: the names of files are completed.',
    `  case "\${words[CURRENT-1]}" in ${flagsWithValue(known).join('|')}) _files; return ;; esac`,
    '  case "$before" in',
    ...branches(known).map((place) => `    ${quoted(place.before)}) candidates=(${described(place)}) ;;`),
    ...leaves(known).map(
      (place) =>
        `    ${quoted(place.before)}|${quoted(`${place.before} `)}*) candidates=(${described(place)}) ;;`,
    ),
    '  esac',
    '  _describe stagedoor candidates',
    '}',
    '# Read as a function of the completion system, or by source.',
    'if [ "$funcstack[1]" = "_stagedoor" ]; then _stagedoor "$@"; else compdef _stagedoor stagedoor; fi',
  ].join('\n');
}

// --- fish ----------------------------------------------------------------------------------------------------------

function fishScript(commands: readonly CommandDefinition[]): string {
  const known = built(commands);
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
    ...branches(known).flatMap(({ before, candidates }) =>
      candidates.map(({ word, about }) =>
        rule(`__stagedoor_at ${fishQuoted(before)}`, `-a ${fishQuoted(word)} -d ${fishQuoted(about)}`),
      ),
    ),
    ...known.flatMap((command) => {
      const condition = `__stagedoor_in ${command.name}`;
      const choices = /^<(\w+(?:\|\w+)+)>$/.exec(command.positionals)?.[1]?.replaceAll('|', ' ');
      return [
        ...(choices === undefined ? [] : [rule(condition, `-a ${fishQuoted(choices)}`)]),
        ...command.options.map((option) => {
          const short = option.short === undefined ? '' : ` -s ${option.short}`;
          const value = option.flags.includes(' ') ? ' -r -F' : '';
          const long = optionFlag(option).slice(2);
          return rule(condition, `-l ${long}${short}${value} -d ${fishQuoted(option.description)}`);
        }),
      ];
    }),
  ].join('\n');
}

// -------------------------------------------------------------------------------------------------------------------

/** As bash and zsh read it back. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
