// Conversations that single clients have with programs of their own: what is declared in them, what their programs may ask,
// and that nothing is left of them.

import { readFileSync } from 'node:fs';
import { lastValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import type { ClientProfile, ServerMessage } from '../../../src/domain/client.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { Transport, Upstream } from '../../../src/transports/transport.ts';
import { callTool, cancelledOn, failure, see, textOf, until } from '../../conformance/transport.ts';
import { answering, openFor } from '../../conformance/upstream.ts';
import { isRunning } from '../../helpers/is-running.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { fixture, scripted, withStdio } from './open-stdio.ts';

const test = suite('stdio upstream', { timeoutMs: 30_000 });

const PROFILE: ClientProfile = {
  protocolVersion: '2025-06-18',
  capabilities: { elicitation: {}, roots: { listChanged: true } },
  clientInfo: { name: 'a-client', version: '7' },
};

test('is a process of its own, to which the client is declared', () =>
  withStdio(fixture(), async (transport) => {
    const [one, two] = [await open(transport), await open(transport)];
    const pids = await Promise.all(
      [transport, one, two].map((conversation) => answerTo(conversation, 'pid')),
    );
    assert.is(new Set(pids).size, 3);
    const told = [transport.facts().pid, one.pid, two.pid];
    assert.equal(told.map(String), pids);
    assert.is(transport.pid, undefined);
    one.notify('notifications/roots/list_changed', {});
    const { declared, heard } = JSON.parse(await answerTo(one, 'client'));
    assert.equal(declared, PROFILE);
    assert.equal(heard, ['notifications/initialized', 'notifications/roots/list_changed']);
    assert.equal(JSON.parse(await answerTo(transport, 'client')).declared.capabilities, {});
    assert.is(one.peer.protocolVersion, PROFILE.protocolVersion);
  }));

test('tells questions and log lines at large when several exchanges are under way', () =>
  withStdio(fixture(), async (transport) => {
    const upstream = await open(transport);
    const messages: ServerMessage[] = [];
    upstream.messages$.subscribe((message) => {
      messages.push(message);
      if (message.kind === 'request') message.answer({ result: { roots: [] } });
    });
    const other = upstream.exchange(callTool('sleep', { ms: 60_000 })).subscribe();
    const asked = await see(upstream.exchange(ask('roots/list', {})));
    const logged = await see(upstream.exchange(callTool('log', { text: 'note' })));
    assert.equal(
      [asked, logged].map(({ events }) => events.map(({ kind }) => kind)),
      [['result'], ['result']],
    );
    assert.equal(JSON.parse(textOf(asked.events[0])), { result: { roots: [] } });
    assert.equal(
      messages.map(({ kind, method }) => [kind, method]),
      [
        ['request', 'roots/list'],
        ['notification', 'notifications/message'],
      ],
    );
    other.unsubscribe();
  }));

test('passes a question on in the exchange it belongs to, and one answer back, though ids collide', () =>
  withStdio(fixture(), async (transport) => {
    for (const upstream of [await open(transport), await open(transport)]) {
      const result = { said: upstream.pid ?? 0 };
      const { asked, seen } = await answering(upstream, { method: 'elicitation/create' }, ({ answer }) => {
        answer({ result });
        answer({ error: { code: -1, message: 'said twice' } });
      });
      assert.is(asked.length, 1);
      assert.equal(JSON.parse(textOf(seen.at(-1))), { result });
      assert.equal(await cancelledOn(upstream), []);
    }
  }));

test('refuses what nobody is there to answer, and gives signs of life itself', () =>
  withStdio(fixture(), async (transport) => {
    const upstream = await open(transport);
    const other = upstream.exchange(callTool('sleep', { ms: 60_000 })).subscribe();
    const unheard = await see(upstream.exchange(ask('roots/list', {})));
    assert.is(JSON.parse(textOf(unheard.events[0])).error.code, -32601);
    other.unsubscribe();
    const { events } = await see(upstream.exchange(ask('ping', {})));
    assert.equal(JSON.parse(textOf(events[0])), { result: {} });
    const shared = await see(transport.exchange(ask('elicitation/create', {})));
    assert.is(JSON.parse(textOf(shared.events[0])).error.code, -32601, 'the shared one may ask for nothing');
  }));

test('passes on what a server asks by itself as soon as it may', () =>
  withStdio(
    scripted(
      '',
      `process.stdin.on('data', (data) => {
        if (String(data).includes('notifications/initialized')) say({ jsonrpc: '2.0', id: 1, method: 'roots/list' });
      });`,
    ),
    async (transport) => {
      const upstream = await open(transport);
      const messages: ServerMessage[] = [];
      upstream.messages$.subscribe((message) => messages.push(message));
      await until(() => messages.length > 0, 'the server asked');
      assert.equal(
        messages.map(({ method }) => method),
        ['roots/list'],
      );
    },
  ));

test.needs(process.platform === 'linux', 'children are found through /proc, which is Linux')(
  'keeps one process waiting for the next client, once there was a first',
  () =>
    withStdio(fixture(), async (transport) => {
      const first = Number(await answerTo(await open(transport), 'pid'));
      let waiting: readonly number[] = [];
      await until(() => {
        waiting = children().filter((pid) => pid !== first && pid !== transport.facts().pid);
        return waiting.length > 0;
      }, 'another process is started');
      assert.equal([Number(await answerTo(await open(transport), 'pid'))], waiting);
    }),
);

test('stands alone: it goes on when the shared process is gone, and those that wait for a client end with that', () =>
  withStdio(fixture(), async (transport) => {
    const [one, two] = [await open(transport), await open(transport)];
    assert.equal([transport.standsAlone, one.standsAlone], [undefined, true]);
    const shared = Number(await answerTo(transport, 'pid'));
    const left = see(one.exchange(callTool('sleep', { ms: 300 })));
    process.kill(shared, 'SIGKILL');
    await lastValueFrom(transport.closed$);
    await transport.close();
    assert.is((await left).end, 'completed', 'what was under way');
    assert.equal(await Promise.all([one, two].map((upstream) => answerTo(upstream, 'count'))), ['1', '1']);
    assert.is(await codeOf(open(transport)), 'BACKEND_UNAVAILABLE', 'no other is started');
    await Promise.all([one.close(), two.close()]);
    assert.equal(
      [one, two].map(({ pid }) => isRunning(Number(pid))),
      [false, false],
    );
  }));

test('goes on being opened when the shared process goes away meanwhile', () =>
  withStdio(fixture('--slow-start=300'), async (transport) => {
    const opening = open(transport);
    await transport.close();
    assert.is(await answerTo(await opening, 'count'), '1');
  }));

test('its end is its own: the others and the shared process go on', () =>
  withStdio(fixture(), async (transport) => {
    const [one, two] = [await open(transport), await open(transport)];
    const pid = Number(await answerTo(one, 'pid'));
    let isOver = false;
    one.messages$.subscribe({
      complete: () => {
        isOver = true;
      },
    });
    await one.close();
    assert.equal([isOver, isRunning(pid)], [true, false]);
    const { end } = await see(one.exchange(callTool('pid', {})));
    assert.equal(failure(end), { code: 'BACKEND_UNAVAILABLE', delivered: 'no' });
    assert.is(await answerTo(two, 'count'), '1');
    assert.is(await answerTo(transport, 'count'), '1');
    one.notify('notifications/roots/list_changed', {}); // dropped
  }));

test('is not opened by bare servers, nor when nobody wants it any more', async () => {
  await withStdio(fixture('--era=bare'), async (transport) => {
    assert.is(await transport.openUpstream(PROFILE, new AbortController().signal), undefined);
  });
  await withStdio(fixture(), async (transport) => {
    const error = await transport
      .openUpstream(PROFILE, AbortSignal.abort())
      .catch((thrown: unknown) => thrown);
    assert.is(error instanceof GatewayError && error.facts.reason, 'its start was cancelled');
  });
});

test('stops the process when the opening is called off', () =>
  withStdio(
    scripted('', 'if (process.ppid && !process.env.FIRST) console.error(process.pid)'),
    async (transport) => {
      const caller = new AbortController();
      const opening = transport.openUpstream(PROFILE, caller.signal).catch((thrown: unknown) => thrown);
      caller.abort();
      const error = await opening;
      assert.is(error instanceof GatewayError && error.facts.reason, 'its start was cancelled');
      const pid = error instanceof GatewayError ? error.facts.stderr?.[0] : undefined;
      assert.not(pid !== undefined && isRunning(Number(pid)));
    },
  ));

test.run();

function open(transport: Transport): Promise<Upstream> {
  return openFor(transport, PROFILE);
}

async function answerTo(conversation: Upstream, tool: string): Promise<string> {
  return textOf((await see(conversation.exchange(callTool(tool, {})))).events.at(-1));
}

/** Process ids of the programs that this process runs. Linux only. */
function children(): readonly number[] {
  const pids = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8');
  return pids.split(' ').filter(Boolean).map(Number);
}

function ask(method: string, params: JsonObject) {
  return callTool('ask', { method, params });
}
