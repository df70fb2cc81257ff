// Servers that do not answer `server/discover` at once: which of them are modern all the same, when a mistake is found out,
// and what is remembered. What each kind of server costs is in http-first-contact.spec.ts.

import type { ServerResponse } from 'node:http';
import * as assert from 'uvu/assert';
import { DISCOVER_TIMEOUT_MS } from '../../../src/transports/http/http-probe.ts';
import type { OpeningMemory } from '../../../src/transports/transport.ts';
import { until } from '../../conformance/transport.ts';
import { suite } from '../../helpers/suite.ts';
import {
  type Answer,
  cut,
  discovered,
  initialized,
  initializedInSession,
  type Manners,
  refused,
  silence,
  status,
  withContact,
} from './first-contact.ts';

const test = suite('http probe', { timeoutMs: 30_000 });

const D = 'server/discover';
const I = 'initialize';
const DONE = 'notifications/initialized';
/** Of servers that leave the first question unanswered, but no other. */
const SHORT_MS = 500;

/** A server that starts slowly: it does as it says when all of these were asked, and then in this order. */
function slow(order: readonly string[], manners: Manners): Manners {
  const waiting = new Map<string, () => void>();
  let isUp = false;
  const held =
    (method: string): Answer =>
    (response, id) => {
      const answer = () => (manners[method] ?? manners.otherwise)(response, id);
      if (isUp) return answer();
      waiting.set(method, answer);
      if (waiting.size < order.length) return;
      isUp = true;
      for (const each of order) waiting.get(each)?.();
    };
  return { ...manners, ...Object.fromEntries(order.map((method) => [method, held(method)])) };
}

/** The first question is lost on its way, or takes for ever. */
function losing(answer: Answer): Answer {
  let isLost = false;
  return (response, id) => {
    if (isLost) return answer(response, id);
    isLost = true;
  };
}

/** The first question is answered when it is asked again, and then that one never is. */
function late(answer: Answer): Answer {
  let first: (() => void) | undefined;
  return (response, id) => {
    if (first === undefined) first = () => answer(response, id);
    else first();
  };
}

const modern: Manners = { [D]: discovered, otherwise: refused() };
const dual: Manners = { ...modern, [I]: initialized };

for (const [name, { manners, asked }] of Object.entries<{ manners: Manners; asked: readonly string[] }>({
  'one of both eras that answers both questions at once, this one first': {
    manners: slow([D, I], dual),
    asked: [D, I],
  },
  'one of both eras that answers both questions at once, the other one first': {
    manners: slow([I, D], dual),
    asked: [D, I, D],
  },
  'one of both eras behind something that lost the question': {
    manners: { ...dual, [D]: losing(discovered) },
    asked: [D, I, D],
  },
  'one that refuses the other era': { manners: { ...modern, [D]: losing(discovered) }, asked: [D, I, D] },
  'one that says nothing to the other era': {
    manners: slow([D, I], { ...modern, [I]: silence }),
    asked: [D, I],
  },
  'one that fails of the other era': {
    manners: slow([I, D], { ...modern, [I]: status(503) }),
    asked: [D, I],
  },
  'one that breaks at the other era': { manners: slow([I, D], { ...modern, [I]: cut }), asked: [D, I] },
})) {
  test(`a slow modern server is a modern one: ${name}`, () =>
    withContact(manners, async (contact) => {
      const memory: OpeningMemory = {};
      assert.equal(await contact.open({ memory, discoverTimeoutMs: SHORT_MS }), { outcome: 'modern', asked });
      assert.equal(memory.unansweredAtMs, undefined);
      assert.equal(await contact.open({ memory }), { outcome: 'modern', asked: [D] });
    }));
}

test('a server that always takes its time is a modern one, too, however often it is asked', () =>
  withContact({ ...modern, [D]: late(discovered) }, async (contact) => {
    const asked = [D, I, D];
    assert.equal(await contact.open({ discoverTimeoutMs: 50 }), { outcome: 'modern', asked });
  }));

test('a server that closes connections while it starts is asked again, and is a modern one', () => {
  let times = 0;
  const starting: Answer = (response, id) => {
    times += 1;
    (times === 1 ? cut : discovered)(response, id);
  };
  return withContact({ ...dual, [D]: starting }, async (contact) => {
    const memory: OpeningMemory = {};
    assert.equal(await contact.open({ memory }), { outcome: 'modern', asked: [D, I, D] });
    assert.equal(memory.unansweredAtMs, undefined);
  });
});

test('ends the session that it opened with a server that is modern after all', () =>
  withContact({ ...dual, [I]: initializedInSession, [D]: losing(discovered) }, async (contact) => {
    const meanwhile = () => until(() => contact.asked.includes('DELETE'), 'it was told');
    const opened = await contact.open({ discoverTimeoutMs: SHORT_MS, meanwhile });
    assert.equal(opened, { outcome: 'modern', asked: [D, I, D, 'DELETE'] });
  }));

test('takes a server that was only slow to refuse for what it is, and asks it again next time', () =>
  withContact({ [D]: losing(refused()), [I]: initialized, otherwise: refused() }, async (contact) => {
    const memory: OpeningMemory = {};
    const outcome = 'legacy';
    assert.equal(await contact.open({ memory, discoverTimeoutMs: SHORT_MS }), {
      outcome,
      asked: [D, I, D, DONE],
    });
    assert.is(memory.unansweredAtMs, undefined);
    assert.equal(await contact.open({ memory }), { outcome, asked: [D, I, DONE] });
  }));

test('lets go of the question that nobody waits for any more', async () => {
  const left: string[] = [];
  const open = new Set<ServerResponse>();
  const hanging: Answer = (response) => {
    open.add(response);
    response.on('close', () => {
      left.push(D);
      open.delete(response);
    });
  };
  await withContact({ [D]: hanging, [I]: initialized, otherwise: refused() }, async (contact) => {
    await contact.open({ discoverTimeoutMs: 50 });
    await until(() => open.size === 0, 'its connections are closed');
    assert.equal(left, [D, D]);
  });
});

test('corrects itself about a server that is another one by now, whichever that is', async () => {
  for (const [now, outcome, asked] of [
    [modern, 'modern', [I, D]],
    [{ ping: discovered, otherwise: refused() }, 'bare', [I, D, 'ping']],
  ] as const satisfies readonly (readonly [Manners, string, readonly string[]])[]) {
    await withContact({ [D]: silence, [I]: initialized, otherwise: refused() }, async (contact) => {
      const memory: OpeningMemory = {};
      assert.is((await contact.open({ memory, discoverTimeoutMs: 50 })).outcome, 'legacy');
      assert.type(memory.unansweredAtMs, 'number');
      contact.behave(now);
      assert.equal(await contact.open({ memory }), { outcome, asked });
      assert.is((await contact.open({ memory })).asked[0], D, 'it is asked like any other again');
    });
  }
});

test('a server that takes up the other era, too, is found out when what is remembered is old', () =>
  withContact({ [D]: silence, [I]: initialized, otherwise: refused() }, async (contact) => {
    const memory: OpeningMemory = {};
    await contact.open({ memory, discoverTimeoutMs: 50 });
    contact.behave(dual);
    assert.equal(await contact.open({ memory }), { outcome: 'legacy', asked: [I, DONE] });
    memory.unansweredAtMs = -Infinity;
    assert.equal(await contact.open({ memory }), { outcome: 'modern', asked: [D] });
  }));

test('a server that closes connections until it is up is a modern one at its next opening', () =>
  withContact({ otherwise: cut }, async (contact) => {
    const memory: OpeningMemory = {};
    for (let opening = 0; opening < 3; opening += 1) {
      assert.is((await contact.open({ memory })).outcome, 'the connection was reset');
    }
    contact.behave(dual);
    assert.equal(await contact.open({ memory }), { outcome: 'modern', asked: [D] });
  }));

test('leaves time for the handshake, however little of that there is', () =>
  withContact({ [D]: silence, [I]: initialized, otherwise: refused() }, async (contact) => {
    assert.ok(DISCOVER_TIMEOUT_MS > 1_000);
    assert.is((await contact.open({ handshakeTimeoutMs: 1_000 })).outcome, 'legacy');
  }));

test.run();
