// The session by itself: opening, carrying, losing, closing.
// What it does with lists of tools is in session-tools.spec.ts.

import { mock } from 'node:test';
import * as assert from 'uvu/assert';
import { notConnected } from '../../../src/domain/error-catalogue.ts';
import { asGatewayError } from '../../../src/domain/errors.ts';
import { RPC } from '../../../src/domain/jsonrpc.ts';
import { ScriptedTransport } from '../../helpers/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { settled } from './instance-harness.ts';
import { SessionHarness, WITH_TOOLS } from './session-harness.ts';

const test = suite('session');

test('opens once, with the definition, and says so with the peer it found', async () => {
  const stage = new SessionHarness();
  assert.equal(stage.told, []);
  await stage.open();
  assert.equal(stage.told, ['opened']);
  assert.is(stage.link.peer.serverName, 'scripted');
  assert.equal(stage.link.facts(), { pid: 4711, stderr: ['a line'], unmatchedMessages: 3 });
  assert.is(stage.opener.openings.length, 1);
});

test('is closed with the reason when the opening fails', async () => {
  const stage = new SessionHarness();
  stage.opener.last.fail('connection refused');
  await settled();
  assert.equal(stage.facts, [
    { type: 'session.closed', reason: 'connection refused', stderr: [], openingMs: 0 },
  ]);
});

test('carries a request, and its answer inside the emission of the transport', async () => {
  const stage = new SessionHarness();
  const transport = await stage.open();
  const { heard } = stage.ask();
  assert.equal(transport.asked, ['tools/call']);
  transport.last.notify('notifications/progress');
  assert.equal(heard, ['notification']);
  transport.last.result();
  assert.equal(heard, ['notification', 'result', 'completed']);
});

test('cancels on the backend when the caller goes away', async () => {
  const stage = new SessionHarness();
  const transport = await stage.open();
  stage.ask().leave();
  assert.is(transport.last.isCancelled, true);
});

test('remembers when the backend was last heard: by answers and by notifications', async () => {
  const stage = new SessionHarness();
  stage.clock.nowMs = 5;
  const transport = await stage.open();
  assert.is(stage.link.lastMessageAtMs(), 5);
  stage.ask();
  stage.clock.nowMs = 10;
  transport.last.notify('notifications/progress');
  assert.is(stage.link.lastMessageAtMs(), 10);
  stage.clock.nowMs = 20;
  transport.tell('notifications/message');
  assert.is(stage.link.lastMessageAtMs(), 20);
  stage.clock.nowMs = 30;
  transport.last.fail(notConnected());
  assert.is(stage.link.lastMessageAtMs(), 20);
});

test('refuses requests after it was told to close', async () => {
  const stage = new SessionHarness();
  const transport = await stage.open();
  transport.closesSlowly = true;
  stage.close();
  assert.equal(
    stage.ask().heard.map((end) => typeof end === 'object' && end.delivered),
    ['no'],
  );
  assert.equal(transport.exchanges, []);
});

test('answers its callers, then says that it is lost, then that it is closed', async () => {
  const stage = new SessionHarness();
  const transport = await stage.open();
  transport.closesSlowly = true;
  const { heard } = stage.ask();
  transport.lose('exited with code 7');
  assert.equal(
    heard.map((end) => typeof end === 'object' && end.delivered),
    ['unknown'],
  );
  await settled();
  assert.equal(stage.told, ['opened', 'lost']);
  assert.is(transport.closings, 1);
  transport.finishClosing();
  await settled();
  assert.equal(stage.facts.slice(1), [
    { type: 'session.lost', reason: 'exited with code 7', stderr: ['a line'] },
    { type: 'session.closed', reason: 'exited with code 7', stderr: ['a line'] },
  ]);
});

test('is not lost but closed when it was told to close', async () => {
  const stage = new SessionHarness();
  const transport = await stage.open();
  const { heard } = stage.ask();
  stage.close();
  assert.is(heard.length, 1, 'the caller is answered at once');
  await settled();
  assert.equal([stage.told, transport.isClosed], [['opened', 'closed'], true]);
});

test('calls an opening off, and closes what it brings nevertheless', async () => {
  const stage = new SessionHarness();
  stage.opener.heedsSignal = false;
  stage.close();
  assert.is(stage.opener.last.signal.aborted, true);
  const transport = await stage.open(new ScriptedTransport(WITH_TOOLS));
  assert.equal([stage.told, transport.isClosed, transport.asked], [['closed'], true, []]);
});

test('closes when its parent stops, without a word', async () => {
  const stage = new SessionHarness();
  const transport = await stage.open();
  const { heard } = stage.ask();
  stage.parent.stop();
  await settled();
  assert.equal([transport.isClosed, heard.length, stage.told], [true, 1, ['opened']]);
});

test('opens conversations for single clients, carries their requests, and ends them with itself', async () => {
  const stage = new SessionHarness();
  const transport = await stage.open();
  const profile = { protocolVersion: '2025-06-18', capabilities: { roots: {} }, clientInfo: { name: 'x' } };
  const upstream = await stage.link.openUpstream(profile, new AbortController().signal);
  assert.equal(transport.profiles, [profile]);
  stage.clock.nowMs = 10;
  const { heard } = stage.ask(upstream);
  transport.upstreams[0]?.last.notify('notifications/progress');
  assert.equal([transport.asked, heard, stage.link.lastMessageAtMs()], [[], ['notification'], 10]);
  stage.close();
  await settled();
  assert.equal([heard.length, transport.upstreams[0]?.isClosed, stage.told], [2, true, ['opened', 'closed']]);
});

test('ends what single clients have there when it is to, and says that it is closed when nothing is left', async () => {
  const stage = new SessionHarness();
  const transport = await stage.open();
  stage.end();
  await settled();
  assert.equal([stage.leases.ends, transport.isClosed, stage.told], [1, true, ['opened']]);
  stage.leases.gone();
  await settled();
  assert.equal(stage.told, ['opened', 'closed']);
});

test('does so while it is being opened, too', async () => {
  const stage = new SessionHarness();
  stage.end();
  await settled();
  assert.equal([stage.leases.ends, stage.told], [1, []]);
  stage.leases.gone();
  await settled();
  assert.equal(stage.told, ['closed']);
});

test('leaves that alone when only its transport is to go, is lost, or it is stopped', async () => {
  for (const leave of ['close', 'lose', 'stop'] as const) {
    const stage = new SessionHarness();
    const transport = await stage.open();
    if (leave === 'close') stage.close();
    else if (leave === 'lose') transport.lose();
    else stage.parent.stop();
    await settled();
    assert.equal([stage.leases.ends, transport.isClosed], [0, true], leave);
  }
});

test('goes on when a conversation of one client ends, or cannot be opened', async () => {
  const stage = new SessionHarness();
  const transport = await stage.open();
  const open = () =>
    stage.link.openUpstream(
      { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: {} },
      new AbortController().signal,
    );
  const { heard } = stage.ask(await open());
  transport.upstreams[0]?.lose();
  transport.thrownByOpenUpstream = notConnected();
  assert.is(asGatewayError(await open().catch((thrown: unknown) => thrown)).code, 'BACKEND_UNAVAILABLE');
  await settled();
  assert.equal([heard.length, stage.told], [1, ['opened']]);
});

test('says that its backend is in doubt, as often as its transport does, until that has closed', async () => {
  const stage = new SessionHarness();
  const transport = await stage.open();
  transport.doubts$.next();
  transport.doubts$.next();
  assert.equal(stage.facts.slice(1), [{ type: 'suspected' }, { type: 'suspected' }]);
  stage.clock.nowMs = 10;
  transport.doubts$.next();
  assert.is(stage.link.lastMessageAtMs(), 0, 'a doubt is no sign of life');
  transport.lose();
  transport.doubts$.next();
  assert.is(stage.facts.filter(({ type }) => type === 'suspected').length, 3);
});

test('hands the messages of its backend to whoever listens', async () => {
  const stage = new SessionHarness();
  const transport = await stage.open();
  const heard: string[] = [];
  stage.link.messages$.subscribe({
    next: ({ kind, method }) => heard.push(`${kind} ${method}`),
    complete: () => heard.push('completed'),
  });
  transport.tell('notifications/resources/updated');
  transport.lose();
  assert.equal(heard, ['notification notifications/resources/updated', 'completed']);
});

test('keeps a subscription open that is no call: nobody times it, and it is a sign of life', async () => {
  const stage = new SessionHarness();
  const transport = await stage.open();
  const heard: string[] = [];
  const subscription = stage.link
    .listen({ method: 'subscriptions/listen' })
    .subscribe({ next: ({ kind }) => heard.push(kind), error: () => heard.push('failed') });
  stage.clock.nowMs = 1_000_000;
  transport.last.notify('notifications/resources/updated');
  assert.equal([heard, stage.link.lastMessageAtMs()], [['notification'], 1_000_000]);
  subscription.unsubscribe();
  assert.is(transport.last.isCancelled, true);
});

test('asks for the gateway itself, past notifications, and gives up after the time it was given', async () => {
  mock.timers.enable({ apis: ['setInterval'] });
  try {
    const stage = new SessionHarness();
    const transport = await stage.open();
    const answered = stage.link.ask({ method: 'ping' }, 10_000);
    transport.last.notify('notifications/progress');
    transport.last.refuse(RPC.methodNotFound);
    assert.is((await answered).kind, 'error');
    const silent = stage.link.ask({ method: 'ping' }, 10_000).catch((thrown: unknown) => thrown);
    mock.timers.tick(9_999);
    assert.is(transport.last.isOpen, true);
    mock.timers.tick(1);
    assert.is(asGatewayError(await silent).code, 'BACKEND_TIMEOUT');
    assert.is(transport.last.isCancelled, true);
  } finally {
    mock.timers.reset();
  }
});

test.run();
