// The options that every command shares that talks to a running gateway.
// Finding it and speaking to it is remote.ts.

import { usualUrls } from './background/daemon-files.ts';
import type { OptionDefinition } from './command.ts';
import type { CommandInput } from './command-input.ts';
import { findGateway, type Remote } from './remote.ts';
import type { Terminal } from './terminal.ts';

/** Appended to the options of each client command. */
export const CLIENT_OPTIONS: readonly OptionDefinition[] = [
  {
    flags: '--url <url>',
    description:
      'Gateway to talk to; default STAGEDOOR_URL, else the one that runs in the background here, else http://127.0.0.1:8080 or :8000',
  },
  { flags: '--json', description: 'Print what the gateway answered, as JSON' },
];

/** The gateway these options name. Throws CommandFailure when none answers. */
export function gatewayOf(input: CommandInput, terminal: Terminal): Promise<Remote> {
  return findGateway(input.text('url'), terminal.env, fetch, usualUrls(terminal));
}
