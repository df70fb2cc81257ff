// `stagedoor gateway events`, or `stagedoor events`: the recent events of a gateway and, with --follow, new ones.

import type { Command } from '../../command.ts';
import { CommandFailure } from '../../failures.ts';
import { pause, untilSignal } from '../../foreground/stop-signals.ts';
import { fieldText, jsonLine, printable } from '../../output.ts';
import { answerIn, type Fields, fields } from '../../remote/answers.ts';
import { CLIENT_OPTIONS } from '../../remote/client-options.ts';
import { requireGateway } from '../../remote/find-gateway.ts';
import { type Remote, StreamBroken } from '../../remote/remote.ts';
import type { Terminal } from '../../terminal.ts';

/** The number of attempts after a broken connection until it counts as a failure, and the pause before each, in ms. */
const TRIES = 5;
const PAUSE_MS = 1_000;
/** The longest time of the recent events alone, in ms: a program at the address of a gateway may send events without end. */
const RECENT_MS = 120_000;

export const gatewayEvents: Command = {
  name: 'gateway events',
  alias: 'events',
  summary:
    'Show recent events of instances, sessions and calls; without the scope admin only your own calls and sessions',
  options: {
    '-f, --follow': 'Keep printing new events until Ctrl-C',
    '--template <name>': 'Events of this template only',
    '--type <words>':
      'Events of these types only, such as instance.unhealthy,session.ended; or of groups: instance, call, session',
    ...CLIENT_OPTIONS,
    '--json': 'Print each event as one line of JSON',
  },
  examples: [
    'gateway events',
    'gateway events --follow --type instance,session.ended',
    'gateway events -f --template search --json',
  ],
  run: async (input, terminal) => {
    const isFollowed = input.has('follow');
    const gateway = await requireGateway(input, terminal);
    const print = (data: string) => {
      const event = answerIn(data);
      if (event === undefined) throw new CommandFailure(`${gateway.url} sent an event that is not JSON`);
      terminal.print(input.has('json') ? jsonLine(data) : line(terminal, fields(event)));
    };
    const query = new URLSearchParams({ follow: String(isFollowed) });
    for (const name of ['template', 'type']) {
      const value = input.text(name);
      if (value !== undefined) query.set(name, value);
    }
    const path = `/events?${query}`;
    const asked = { gateway, path, print, note: terminal.note };
    if (isFollowed) await untilSignal((signal) => show(asked, signal));
    else await show(asked);
    return 0;
  },
};

interface AskedEvents {
  readonly gateway: Remote;
  /** The path with its query. */
  readonly path: string;
  /** Prints one event, given as JSON. */
  readonly print: (data: string) => void;
  readonly note: Terminal['note'];
}

/** Prints the events; with a signal, requests them again after a broken connection, from the break on. */
async function show({ gateway, path, print, note }: AskedEvents, signal?: AbortSignal): Promise<void> {
  let after: string | undefined;
  for (let tries = 0; ; tries += 1) {
    try {
      const longestMs = signal === undefined ? RECENT_MS : undefined;
      await gateway.follow(path, { after, signal, longestMs }, ({ data, id }) => {
        tries = 0;
        if (id !== '') after = id;
        print(data);
      });
      if (signal?.aborted === false) note(`${gateway.url} has ended the stream`);
      return;
    } catch (error) {
      const isBroken = error instanceof StreamBroken;
      // A gateway that is being started again may also refuse a request.
      const mayTry = isBroken || (error instanceof CommandFailure && tries > 0);
      if (signal === undefined || !mayTry || tries >= TRIES) throw error;
      if (isBroken) note(`${error.message}; reconnecting`);
      await pause(PAUSE_MS, signal);
    }
  }
}

/** The line of an event: `10:15:07 instance.unhealthy  search/search-1  reason="exited with code 1"`. */
function line(
  terminal: Terminal,
  { type, at, template, instance_id: id, server_id: _, is_last: __, alias: ___, ...rest }: Fields,
): string {
  const clock = typeof at === 'string' ? new Date(at).toTimeString().slice(0, 8) : ' '.repeat(8);
  const instance = [template, id].filter((part) => part !== undefined).join('/');
  const details = Object.entries(type === 'gateway.sampled' ? fields(rest.totals) : rest).map(
    ([name, value]) => `${name}=${fieldText(value)}`,
  );
  const parts = [
    `${terminal.paint('dim', clock)} ${colouredType(terminal, String(type))}`,
    instance,
    ...details,
  ];
  return printable(parts.filter((part) => part !== '').join('  '));
}

function colouredType(terminal: Terminal, type: string): string {
  if (/\.(unhealthy|crashed|failed|refused|retried|ejected)$|^missed$/.test(type))
    return terminal.paint('red', type);
  return type === 'instance.healthy' ? terminal.paint('green', type) : type;
}
