// What every command shares that talks to a running gateway: its options, finding the gateway, and a hint for a template that
// the gateway does not know. HTTP is remote.ts.

import { nearMiss } from '../config/nearest.ts';
import { fields } from './answers.ts';
import { usualUrls } from './background/daemon-files.ts';
import type { CommandInput, OptionDefinition } from './command.ts';
import { CommandFailure, GatewayRefusal } from './failures.ts';
import { findGateway, type Remote } from './remote.ts';
import type { Terminal } from './terminal.ts';

/** Appended to the options of each client command. */
export const CLIENT_OPTIONS: readonly OptionDefinition[] = [
  {
    flags: '--url <url>',
    description:
      'URL of the gateway; default STAGEDOOR_URL, else the gateway in the background here, else http://127.0.0.1:8080 or :8000',
  },
  { flags: '--json', description: 'Print the answer of the gateway as JSON' },
];

/** For commands with many columns; see `table` in output.ts. */
export const WIDE_OPTION: OptionDefinition = {
  flags: '--wide',
  description: 'Show every column, also those that are empty or zero in every row; always so in a pipe',
};

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

/** Runs a request about a template. For an unknown name the failure suggests a similar one. */
export async function ofTemplate<T>(gateway: Remote, template: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof GatewayRefusal) || error.code !== 'TEMPLATE_NOT_FOUND') throw error;
    const meant = nearMiss(template, await templatesOf(gateway));
    if (meant === undefined) throw error;
    throw new CommandFailure(`${error.message}; did you mean "${meant}"?`, { cause: error });
  }
}

/** None where the caller may not ask: it is only advice. */
async function templatesOf(gateway: Remote): Promise<readonly string[]> {
  try {
    return Object.keys(fields(fields(await gateway.request('/gateway/registry')).templates));
  } catch (error) {
    if (error instanceof CommandFailure) return [];
    throw error;
  }
}
