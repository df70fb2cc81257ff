// The commands that a caller without the scope `admin` may register. A command is code that this machine will run, so
// the operator lists the allowed commands, word by word. Pure; the calling code checks the scope.
// Source: ADR 20.

/**
 * A whole command line. A word is taken as it is; one that begins with `*` stands for any single word that does not begin
 * with `-`: `['npx', '-y', '@scope/server@1.2.3', '*path']`. The program itself is always named.
 */
export type AllowedCommand = readonly string[];

/** A command to check. */
export interface WantedCommand {
  /** The program and its arguments, split. */
  readonly words: readonly string[];
  readonly workingDir?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
}

/** What callers without the scope `admin` may run. */
export interface CommandRules {
  readonly allowed: readonly AllowedCommand[];
  /** Names of variables that the template declares. */
  readonly declaredNames: readonly string[];
}

/** Why the command may not be registered, as a sentence; undefined when it may. */
export function commandRefusal(
  { words, workingDir, env = {} }: WantedCommand,
  { allowed, declaredNames }: CommandRules,
): string | undefined {
  if (!allowed.some((pattern) => fits(pattern, words))) {
    return 'This command is not in the list of allowed commands; an admin may register it.';
  }
  if (workingDir !== undefined) return 'Only an admin may choose the working directory of a command.';
  for (const name of Object.keys(env)) {
    if (CHANGES_THE_PROGRAM.test(name)) {
      return `Only an admin may set ${name}: it decides what code runs.`;
    }
    if (!declaredNames.includes(name)) return `The template does not declare the variable ${name}.`;
  }
  return undefined;
}

/** Variables by which a loader, a shell or an interpreter runs other code than the command names. */
const CHANGES_THE_PROGRAM =
  /^(?:PATH|PATHEXT|LD_.*|DYLD_.*|NODE_OPTIONS|NODE_PATH|PYTHON.*|BASH_ENV|ENV|PERL5.*|RUBY(?:OPT|LIB)|JAVA_TOOL_OPTIONS)$/i;

function fits(pattern: AllowedCommand, words: readonly string[]): boolean {
  if (words.length === 0 || pattern.length !== words.length) return false;
  return pattern.every((wanted, index) => fitsWord(wanted, words[index], index));
}

function fitsWord(wanted: string, word: string | undefined, index: number): boolean {
  if (!wanted.startsWith('*')) return wanted === word;
  return index > 0 && word !== undefined && word !== '' && !word.startsWith('-');
}
