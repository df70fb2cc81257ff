// The command line: finds the command, runs it, and maps its outcome to an exit code. bin/stagedoor.mjs calls `main`.

import { VERSION } from '../domain/version.ts';
import { type CommandLine, readCommandLine } from './command-line.ts';
import { COMMAND_GROUPS, COMMANDS } from './commands/index.ts';
import { Cancelled, CommandFailure, UsageError } from './failures.ts';
import { commandHelp, groupHelp, overview } from './help.ts';
import { processTerminal, quietTerminal, type Terminal } from './terminal.ts';

/** The exit codes. The last one is that of a program which SIGINT has ended: 128 + 2. */
const [SUCCESS, FAILURE, USAGE, INTERRUPTED] = [0, 1, 2, 130];

/**
 * Runs one command line (without program and script) and resolves with the exit code: 0, 1 when the command failed,
 * 2 when it was not understood or not allowed, 130 after Ctrl-C at a question or during a wait. Never rejects.
 */
export async function main(argv: readonly string[], terminal: Terminal = processTerminal()): Promise<number> {
  try {
    const line = readCommandLine(COMMANDS, argv);
    const code = await perform(line, terminal);
    // A gateway serves without its output, and its exit code says how it stopped.
    if (line.kind !== 'run' || line.command.name !== 'gateway start') await terminal.written();
    return code;
  } catch (error) {
    if (error instanceof UsageError) return fail(USAGE, error.message);
    if (error instanceof Cancelled) return fail(INTERRUPTED, error.message);
    if (error instanceof CommandFailure) return fail(FAILURE, error.message);
    return fail(FAILURE, error instanceof Error ? `${error.stack}` : String(error));
  }

  function fail(code: number, message: string): number {
    terminal.complain(`stagedoor: ${message}`);
    return code;
  }
}

async function perform(line: CommandLine, terminal: Terminal): Promise<number> {
  switch (line.kind) {
    case 'run':
      return line.command.run(line.input, line.input.has('quiet') ? quietTerminal(terminal) : terminal);
    case 'help':
      terminal.print(commandHelp(line.command, terminal.columns));
      return SUCCESS;
    case 'version':
      terminal.print(VERSION);
      return SUCCESS;
    case 'overview': {
      const show = line.isRequested ? terminal.print : terminal.complain;
      const { group } = line;
      const about = group === undefined ? undefined : COMMAND_GROUPS[group];
      show(
        group === undefined || about === undefined
          ? overview(COMMANDS, COMMAND_GROUPS, terminal.columns)
          : groupHelp(COMMANDS, group, about, terminal.columns),
      );
      return line.isRequested ? SUCCESS : USAGE;
    }
  }
}
