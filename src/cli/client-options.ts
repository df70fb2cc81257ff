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
export async function gatewayOf(input: CommandInput, terminal: Terminal): Promise<Remote> {
  const found = await terminal.busy('looking for a gateway', () =>
    findGateway(input.text('url'), terminal.env, fetch, usualUrls(terminal)),
  );
  return shownRemote(found, terminal);
}

/** The same gateway; a person sees that it is waited for. */
export function shownRemote(remote: Remote, { busy }: Pick<Terminal, 'busy'>): Remote {
  const shown = <T>(work: () => Promise<T>): Promise<T> => busy(`waiting for ${remote.url}`, work);
  return {
    ...remote,
    ask: (...asked) => shown(() => remote.ask(...asked)),
    request: (...asked) => shown(() => remote.request(...asked)),
    look: (...asked) => shown(() => remote.look(...asked)),
  };
}
