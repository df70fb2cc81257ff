// `stagedoor completion`: prints what a shell needs to complete commands and options.

import type { CommandDefinition } from '../command.ts';
import { UsageError } from '../failures.ts';

/** Row of the command table. The table itself is loaded when it runs, since it lists this row, too. */
export const completion: CommandDefinition = {
  name: 'completion',
  positionals: '<bash|zsh|fish>',
  summary: 'Print the completion of commands and options for a shell, to be loaded by it at its start',
  options: [],
  examples: [
    'completion bash > ~/.local/share/bash-completion/completions/stagedoor',
    'completion zsh > ~/.zfunc/_stagedoor',
    'completion fish > ~/.config/fish/completions/stagedoor.fish',
  ],
  run: async (input, terminal) => {
    const { COMPLETIONS } = await import('../completion-scripts.ts');
    const { COMMANDS } = await import('./index.ts');
    const shell = input.positional(0);
    const script = COMPLETIONS.get(shell);
    if (script === undefined) {
      throw new UsageError(
        `completion is there for ${[...COMPLETIONS.keys()].join(', ')}, not for "${shell}"`,
      );
    }
    terminal.print(script(COMMANDS));
    return 0;
  },
};
