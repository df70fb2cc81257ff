// `gateway start --demo`: registers the servers of demo-servers.ts, reports the state of each, and shows calls to try.

import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { filter, firstValueFrom, fromEvent, map, merge, timer } from 'rxjs';
import type { Auth } from '../../auth/auth.ts';
import { messageOf } from '../../domain/errors/errors.ts';
import type { FoundInstance } from '../../domain/instances/found-instances.ts';
import { defaultTransport, TRANSPORT_TRAITS } from '../../domain/instances/transport-kinds.ts';
import { LIMITS } from '../../domain/limits.ts';
import { EVENT_STREAM_TYPE } from '../../domain/mcp/media-types.ts';
import { lastWords } from '../../domain/text.ts';
import { DAY_MS } from '../../domain/time/clock.ts';
import { ownCommand } from '../../domain/version.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { writeFailure } from '../failures.ts';
import { printable } from '../output.ts';
import type { Terminal } from '../terminal.ts';
import { planDemo, SHOWCASE } from './demo-servers.ts';

interface DemoSetup {
  readonly gateway: Pick<Gateway, 'register' | 'events$' | 'instance' | 'views'>;
  readonly auth: Pick<Auth, 'isEnabled' | 'accounts'>;
  readonly urls: readonly string[];
}

const KEY_LIFETIME_MS = 7 * DAY_MS;

export type Demo = ReturnType<typeof openDemo>;

/** Makes the scratch folder of the demo. `templates`: the folder of definitions. */
export function openDemo(setup: DemoSetup, terminal: Pick<Terminal, 'print' | 'paint'>, templates?: string) {
  const scratch = makeScratch();
  return {
    /** Starts all servers and resolves when each is healthy or has failed; prints nothing after `signal` is aborted. */
    play: async (signal: AbortSignal): Promise<void> => {
      const print = (text: string): void => {
        if (!signal.aborted) terminal.print(text);
      };
      const { servers, problems } = await planDemo(scratch, templates);
      for (const problem of problems) print(problem);
      const width = Math.max(...servers.map(({ id }) => id.length));
      const outcomes = servers.map(async (server) => {
        const { template, id } = server;
        print(`${id.padEnd(width)}  starting…`);
        const { isHealthy, text } = await start(setup.gateway, server, signal);
        print(`${id.padEnd(width)}  ${terminal.paint(isHealthy ? 'green' : 'red', text)}`);
        return isHealthy ? [template] : [];
      });
      const healthy = (await Promise.all(outcomes)).flat();
      const [url = ''] = setup.urls;
      const expiresAt = new Date(Date.now() + KEY_LIFETIME_MS).toISOString();
      const wanted = { name: 'demo', permissions: ['gateway:read', 'tools:call'], expiresAt } as const;
      const needsKey = healthy.length > 0 && setup.auth.isEnabled;
      const apiKey = needsKey ? (await setup.auth.accounts.createApiKey(wanted)).key : undefined;
      const calls = demoCalls({ url, folder: scratch, apiKey, healthy });
      const invitation = calls.length === 0 ? 'The gateway keeps trying.' : 'To try in another terminal:';
      print(`\n${healthy.length} of ${servers.length} servers are healthy. ${invitation}`);
      if (apiKey !== undefined && process.platform !== 'win32') {
        print(`\n${terminal.paint('dim', 'The API key of the calls below, for your own calls.')}`);
        print(`export STAGEDOOR_API_KEY=${apiKey}`);
      }
      if (calls.length > 0) {
        const clients = apiKey === undefined ? CLIENTS : `${CLIENTS} ${WITH_KEY}`;
        print(`\n${terminal.paint('dim', clients)}\n${url}/mcp`);
        if (await hasView(setup.gateway)) print(`\n${terminal.paint('dim', OF_VIEW)}\n${url}/mcp/${VIEW.id}`);
      }
      for (const { what, line, file } of calls) {
        if (file !== undefined) writeFileSync(file.path, file.body);
        print(`\n${terminal.paint('dim', what)}\n${line}`);
      }
      print(
        `\nHealth of everything: ${url}/gateway/health\nConsole: ${url}/console\nCtrl-C stops the gateway and its servers.`,
      );
    },
    /** Removes the files of the demo, when its servers have ended. */
    remove: (): void => rmSync(scratch, { recursive: true, force: true, maxRetries: 3 }),
  };
}

/** The real path: servers compare it with paths that they resolve, and temporary folders are often links. */
function makeScratch(): string {
  try {
    return mkdtempSync(join(realpathSync(tmpdir()), 'stagedoor-demo-'));
  } catch (error) {
    throw writeFailure(tmpdir(), error);
  }
}

const CLIENTS = `The URL for MCP clients; /mcp/<template> is one of the servers alone, and "${ownCommand('connect <template>')}" shows how.`;
/** A view of some tools of two templates. */
const VIEW = {
  id: 'notes',
  title: 'Notes',
  description: 'Reads files and remembers facts, and changes no file.',
  from: [
    { template: 'filesystem', tools: ['read_*', 'list_*', 'search_files'] },
    { template: 'memory', tools: ['create_entities', 'add_observations', 'search_nodes', 'read_graph'] },
  ],
} as const;
const OF_VIEW = `A view: one server of chosen tools of several, and "${ownCommand(`view show ${VIEW.id}`)}" shows how.`;

/** False when the database has something else of that name, or cannot store it. */
async function hasView({ views }: DemoSetup['gateway']): Promise<boolean> {
  return views.put(VIEW).then(
    () => true,
    () => false,
  );
}

const WITH_KEY = 'Those that sign in by a browser need no key; others send it in the header X-API-Key.';

/** Starts one server. Never rejects, so that the other servers continue. */
async function start(
  gateway: DemoSetup['gateway'],
  { template, id, input }: Pick<FoundInstance, 'template' | 'id' | 'input'>,
  signal: AbortSignal,
) {
  const startedAtMs = performance.now();
  // Subscribed before the registration, so that no event is missed.
  const settled = firstValueFrom(
    merge(
      gateway.events$.pipe(
        filter((event) => event.type === 'instance.healthy' || event.type === 'instance.unhealthy'),
        filter((event) => event.template === template && event.instanceId === id),
        map((event) => (event.type === 'instance.healthy' ? undefined : event.reason)),
      ),
      fromEvent(signal, 'abort').pipe(map(() => 'the gateway stops')),
      timer(LIMITS.handshakeMs).pipe(map(() => `no answer within ${LIMITS.handshakeMs / 1000} s`)),
    ),
  );
  try {
    await gateway.register(template, input);
    const reason = await settled;
    if (reason !== undefined) {
      const [lastLine] = lastWords(gateway.instance(template, id).snapshot.stderr, 1);
      const output = lastLine === undefined ? '' : `; last output: "${lastLine}"`;
      return { isHealthy: false, text: printable(`failed: ${reason}${output}`) };
    }
    const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1);
    const transport = TRANSPORT_TRAITS[defaultTransport(input)].title;
    return { isHealthy: true, text: `healthy after ${seconds} s (${transport})` };
  } catch (error) {
    return { isHealthy: false, text: `failed: ${messageOf(error)}` };
  }
}

// --- calls, as command lines that work when they are pasted into a shell of this platform ------------------

/**
 * One call: a description of what it shows, and the line to paste. `file` must hold `body` before the line works
 * (Windows only).
 */
interface DemoCall {
  readonly what: string;
  readonly line: string;
  readonly file?: { readonly path: string; readonly body: string };
}

interface DemoCallsOptions {
  readonly url: string;
  readonly folder: string;
  readonly apiKey: string | undefined;
  readonly healthy: readonly string[];
  readonly isWindows?: boolean;
}

/**
 * Calls that healthy templates can answer: three to `everything`, or else one to each of the others. No quoting of JSON works
 * in both cmd and PowerShell, so on Windows the body comes from a file below `folder`. `apiKey` is sent with every call.
 */
export function demoCalls(options: DemoCallsOptions): readonly DemoCall[] {
  const { url, folder, apiKey, healthy, isWindows = process.platform === 'win32' } = options;
  // In PowerShell `curl` is another command.
  const curl = isWindows ? 'curl.exe' : 'curl';
  const quoted = (text: string) => (isWindows ? `"${text}"` : `'${text}'`);
  const key = apiKey === undefined ? [] : [`X-API-Key: ${apiKey}`];
  const lineOf = (path: string, headers: readonly string[], flags = '-s') =>
    [`${curl} ${flags} ${url}/mcp/${path}`, ...headers.map((header) => `-H ${quoted(header)}`)].join(' ');

  const list = (template: string): DemoCall => ({
    what: 'Which tools are there?',
    line: lineOf(`${template}/tools/list`, key),
  });
  const call = (what: string, tool: string, values: object, accept?: string): DemoCall => {
    const body = JSON.stringify({ name: tool, arguments: values });
    const path = join(folder, `${tool}.json`);
    const wanted = accept === undefined ? [] : [`Accept: ${accept}`];
    const headers = [...key, 'Content-Type: application/json', ...wanted];
    const request = lineOf(`${SHOWCASE}/tools/call`, headers, accept === undefined ? '-s' : '-sN');
    const line = `${request} -d ${quoted(isWindows ? `@${path}` : body)}`;
    return isWindows ? { what, line, file: { path, body } } : { what, line };
  };

  if (!healthy.includes(SHOWCASE)) return [...new Set(healthy)].map(list);
  return [
    list(SHOWCASE),
    call('Call one of them; three instances take turns.', 'echo', { message: 'hello' }),
    call(
      'Follow a long call while it works.',
      'trigger-long-running-operation',
      { duration: 3, steps: 3 },
      EVENT_STREAM_TYPE,
    ),
  ];
}
