// A gateway over HTTP with a program whose processes a spec can identify among all processes of the machine. The harness kills
// the shared process of its instance, prevents its restart, and opens clients of the legacy era.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { firstValueFrom, timeout } from 'rxjs';
import * as assert from 'uvu/assert';
import type { TemplatePolicy } from '../../../src/balancing/policy.ts';
import type { InstanceRecord } from '../../../src/http/records/instance-record.ts';
import { postTo } from '../../gateway/mcp/post.ts';
import {
  type ClientOptions,
  LEGACY_VERSION,
  LegacyClient,
  type Outcome,
  textOf,
} from '../../helpers/clients/mcp-client.ts';
import { Wire } from '../../helpers/clients/mcp-wire.ts';
import { becomes, eventually } from '../../helpers/eventually.ts';
import { type AppFixture, startApp } from '../../helpers/http/app.ts';
import { canFindProcesses, isRunning, processesWhere } from '../../helpers/programs/processes.ts';
import { together } from '../../helpers/together.ts';
import { fixture } from '../../transports/stdio/open-stdio.ts';

export const TEMPLATE = 't';
export const PATH = `/mcp/${TEMPLATE}`;
const ID = 'a';
/** A client that has a dedicated process also where the template is `auto`. */
export const ASKABLE: ClientOptions = { capabilities: { elicitation: {} } };
/** Longest wait for events that take one or two back-offs. */
const patienceMs = 20_000;

export interface DedicatedHarnessOptions {
  /** Overrides `isolated` and `never`. */
  readonly policy?: Partial<TemplatePolicy>;
  /** The maximum of dedicated processes. */
  readonly processes?: number;
}

/** How a shared process is lost. */
export type Loss = (harness: DedicatedHarness) => void;

export const KILLED: Loss = (harness) => harness.kill(harness.sharedPid());

/** A gateway, its instance, and clients. */
export class DedicatedHarness {
  readonly app: AppFixture;
  readonly wire: Wire;
  readonly #folder = mkdtempSync(join(tmpdir(), 'stagedoor-own-'));

  private constructor(app: AppFixture) {
    this.app = app;
    this.wire = new Wire(app.url);
  }

  static async open({ policy, processes }: DedicatedHarnessOptions = {}): Promise<DedicatedHarness> {
    const sessions = processes === undefined ? {} : { processes };
    return new DedicatedHarness(
      await startApp({
        gateway: {
          policy: { processSharing: 'isolated', sessionFailover: 'never', ...policy },
          sessions,
        },
      }),
    );
  }

  /** Registers the instance, or replaces it; without `isAwaited` it may fail to start. */
  async add({ isAwaited = true } = {}): Promise<void> {
    const { command, args } = fixture(this.#barFlag);
    const instance = { id: ID, command, args: [...args] };
    const waitMs = isAwaited ? patienceMs : 0;
    const { healthy } = await this.app.gateway.register(TEMPLATE, instance, { waitMs });
    if (isAwaited) assert.is(healthy, true, 'it is healthy');
  }

  /** Opens a session. */
  client(): Promise<LegacyClient> {
    return LegacyClient.open(this.wire, PATH, ASKABLE);
  }

  /** Requests a session; returns status and code, and the session id if one opened. Not over HTTP. */
  async knock(): Promise<{ readonly said: string; readonly sessionId: string | undefined }> {
    const clientInfo = { name: 'raw', version: '1' };
    const params = { protocolVersion: LEGACY_VERSION, capabilities: { elicitation: {} }, clientInfo };
    const message = { method: 'initialize', params };
    const { status, headers, answer } = await postTo(this.app.gateway, { template: TEMPLATE, message });
    if (status === 200) return { said: '200', sessionId: headers[headers.indexOf('Mcp-Session-Id') + 1] };
    const { error_code } = Object(Object(answer.error).data);
    return { said: `${status} ${error_code}`, sessionId: undefined };
  }

  /** Requests a session until one opens: capacity is free when a process is gone, a while after its session. */
  async comeIn(): Promise<void> {
    await becomes(async () => (await this.knock()).said, '200', patienceMs);
  }

  /** Ends a session by its id. */
  async end(sessionId: string): Promise<void> {
    const headers = { 'Mcp-Session-Id': sessionId };
    const { status } = await this.wire.exchange(PATH, { method: 'DELETE', headers });
    assert.ok(status < 300, `DELETE: ${status}`);
  }

  async command(verb: 'restart' | 'deregister'): Promise<void> {
    await this.app.gateway[verb](TEMPLATE, ID);
  }

  /** The number of dedicated processes that an operator sees. */
  async dedicatedProcesses(): Promise<number> {
    const { body } = await this.app.ask('GET', '/gateway/registry');
    const [record]: readonly InstanceRecord[] = Object(Object(body.templates)[TEMPLATE]).instances;
    return record?.own_processes ?? 0;
  }

  /** Waits until `count` processes are dedicated, and nothing else runs but the shared one and a reserve. */
  async settlesAt(count: number): Promise<void> {
    const look = async () => ({ own: await this.dedicatedProcesses(), all: this.#processes() });
    const isSettled = ({ own, all }: Awaited<ReturnType<typeof look>>) =>
      own === count && all.length <= count + 2;
    const seen = await eventually(look, isSettled, patienceMs);
    assert.ok(isSettled(seen), `${count} are wanted: ${JSON.stringify(seen)}`);
  }

  /** The process that clients share; fails when there is none. */
  sharedPid(): number {
    const { pid } = this.app.gateway.instance(TEMPLATE, ID).snapshot;
    assert.type(pid, 'number', 'it has a shared process');
    return Number(pid);
  }

  kill(pid: number): void {
    assert.ok(isRunning(pid), `${pid} runs, until it is killed`);
    process.kill(pid, 'SIGKILL');
  }

  /** Ends the shared process and prevents its restart; resolves when the gateway waits before its next attempt. */
  async lose(loss = KILLED): Promise<void> {
    const pid = this.sharedPid();
    writeFileSync(this.#barPath, '');
    const attempt = firstValueFrom(this.app.gateway.on('instance.restarting').pipe(timeout(patienceMs)));
    await Promise.all([attempt, Promise.resolve().then(() => loss(this))]);
    assert.is(isRunning(pid), false, 'it lost its shared process');
  }

  /** Allows the restart; resolves when a new shared process is healthy. */
  async regain(): Promise<void> {
    rmSync(this.#barPath, { force: true });
    const isBack = async () => {
      const { healthy, pid } = this.app.gateway.instance(TEMPLATE, ID).snapshot;
      return healthy && pid !== null && isRunning(pid); // the death may not be noticed yet
    };
    assert.ok(await eventually(isBack, Boolean, patienceMs), 'it is healthy again');
  }

  /** Ends the gateway, and fails if any of its processes is left. */
  async close(): Promise<void> {
    this.wire.close();
    await this.app.close();
    const left = canFindProcesses ? this.#processes() : [];
    for (const pid of left) this.kill(pid);
    rmSync(this.#folder, { recursive: true, force: true });
    assert.equal(left, [], 'nothing outlives the gateway');
  }

  /** Every running process of the instance: shared, dedicated and in reserve. Linux only. */
  #processes(): number[] {
    return processesWhere('cmdline', (words) => words.split('\0').includes(this.#barFlag));
  }

  /** While this file exists, every start of the instance fails; running processes continue. */
  get #barPath(): string {
    return join(this.#folder, ID);
  }

  get #barFlag(): string {
    return `--refuse-while=${this.#barPath}`;
  }
}

/** Declares tests that each have a gateway, a few at a time: they spend most of their time in back-offs. */
export function dedicatedTests(declare: Parameters<typeof together>[0]) {
  const test = together(declare, 3);
  return (
    name: string,
    options: DedicatedHarnessOptions,
    body: (harness: DedicatedHarness) => Promise<void>,
  ): void =>
    test(name, async () => {
      const harness = await DedicatedHarness.open(options);
      try {
        await body(harness);
      } finally {
        await harness.close();
      }
    });
}

/** The counter of a session's server, which rises with each call; else status and code of the refusal. */
export async function count(client: LegacyClient): Promise<string> {
  return said(await client.call('count', { ms: 10 }));
}

/** The pid of the process of a session; fails without an answer. */
export async function pidOf(client: LegacyClient): Promise<number> {
  const text = said(await client.call('pid'));
  assert.match(text, /^\d+$/);
  return Number(text);
}

/** The text of a result; else status and code. */
function said({ status, result, error }: Outcome): string {
  return result === undefined ? `${status} ${error?.code}` : textOf({ result });
}

/** Waits until none of these processes runs. */
export async function allGone(pids: readonly number[]): Promise<void> {
  await becomes(() => pids.filter(isRunning), [], patienceMs);
}

/** Arguments of the tool `ask`, the answer of the client, and the result of the tool. */
export const QUESTION = {
  method: 'elicitation/create',
  params: { message: 'sure?', requestedSchema: { type: 'object', properties: {} } },
};
export const YES = { action: 'accept', content: {} };
export const SAID_YES = /^{"result":{"action":"accept"/;
