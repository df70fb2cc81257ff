// The tree of actors: the root, a supervisor per template, and the instances below it.

import { setImmediate as turn } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { type Actor, createActor, SimulatedClock } from 'xstate';
import { InstanceSupervisor } from '../../src/actors/instance-supervisor.ts';
import { InstanceRef } from '../../src/actors/instances/instance-ref.ts';
import { rootMachine, templateMachine } from '../../src/actors/template.machine.ts';
import { asGatewayError } from '../../src/domain/errors.ts';
import { DEFAULT_POLICY } from '../../src/domain/policy.ts';
import { ScriptedOpener, type ScriptedTransport } from '../helpers/scripted-transport.ts';
import { suite } from '../helpers/suite.ts';
import { definition, settled } from './instances/instance-harness.ts';

const test = suite('supervision of instances');
/** One instance below the supervisor, whose clock the spec can break: then every look at it throws. */
interface Member {
  readonly ref: InstanceRef;
  readonly opener: ScriptedOpener;
  readonly heard: string[];
  breakDown(): void;
}
class Supervised {
  readonly clock = new SimulatedClock();
  readonly crashes: string[] = [];
  readonly ends: string[] = [];
  readonly actor: Actor<typeof templateMachine> = createActor(templateMachine, { clock: this.clock });

  constructor() {
    this.actor.on('instance.crashed', ({ actorId }) => this.crashes.push(actorId));
    this.actor.on('instance.ended', ({ actorId }) => {
      assert.not.ok(this.children.includes(actorId), 'its id is free by then');
      this.ends.push(actorId);
    });
    this.actor.start();
  }

  get children(): string[] {
    return Object.keys(this.actor.getSnapshot().children);
  }

  add(actorId: string): Member {
    const opener = new ScriptedOpener();
    let isBroken = false;
    const now = (): number => {
      if (isBroken) throw new Error('the clock broke');
      return this.clock.now();
    };
    const input = {
      definition: definition(),
      policy: DEFAULT_POLICY,
      open: opener.open,
      now,
      random: () => 0.5,
      alarm: () => () => undefined,
    };
    this.actor.send({ type: 'instance.add', actorId, input });
    const child = this.actor.getSnapshot().children[actorId];
    if (child === undefined) throw new Error('it was not started');
    const ref = new InstanceRef(child, () => this.clock.now());
    const heard: string[] = [];
    ref.state$.subscribe({ next: (state) => heard.push(state), complete: () => heard.push('completed') });
    const breakDown = (): void => {
      isBroken = true;
      child.send({ type: 'suspected' });
    };
    return { ref, opener, heard, breakDown };
  }

  async addHealthy(actorId: string): Promise<Member & { readonly transport: ScriptedTransport }> {
    const member = this.add(actorId);
    const transport = member.opener.last.succeed();
    await settled();
    return { ...member, transport };
  }
}
function started(): Actor<typeof rootMachine> {
  const root = createActor(rootMachine, { clock: new SimulatedClock() });
  root.start();
  return root;
}
/** Starts one instance of the template; its clock throws when `isBroken`. */
function add(root: Actor<typeof rootMachine>, template: string, isBroken = false) {
  const opener = new ScriptedOpener();
  const now = (): number => {
    if (isBroken) throw new Error('the clock is broken');
    return 0;
  };
  root.getSnapshot().children[template]?.send({
    type: 'instance.add',
    actorId: 'a#1',
    input: {
      definition: definition({ template }),
      policy: DEFAULT_POLICY,
      open: opener.open,
      now,
      random: () => 0.5,
      alarm: () => () => undefined,
    },
  });
  return opener;
}

test('starts an instance under the id it is given, at once', async () => {
  const supervised = new Supervised();
  const { ref, opener } = supervised.add('my.server_1#1');
  assert.equal([supervised.children, ref.state, opener.openings.length], [['my.server_1#1'], 'starting', 1]);
  supervised.actor.stop();
});

test('forgets an instance that ended', async () => {
  const supervised = new Supervised();
  const one = await supervised.addHealthy('my.server#1');
  const other = await supervised.addHealthy('my.server#2');
  one.ref.leave(0);
  await settled();
  assert.equal(supervised.children, ['my.server#2']);
  assert.equal([one.ref.state, other.ref.state], ['stopped', 'healthy']);
  assert.equal([supervised.crashes, supervised.ends], [[], ['my.server#1']]);
  supervised.actor.stop();
});

test('survives a crashed instance, removes and reports it', async () => {
  const supervised = new Supervised();
  const broken = await supervised.addHealthy('my.server#1');
  const other = await supervised.addHealthy('my.server#2');
  broken.breakDown();
  assert.equal([supervised.children, supervised.crashes], [['my.server#2'], ['my.server#1']]);
  assert.equal([supervised.actor.getSnapshot().status, other.ref.state], ['active', 'healthy']);
  await supervised.addHealthy('my.server#3');
  assert.equal(supervised.children, ['my.server#2', 'my.server#3']);
  supervised.actor.stop();
});

test('answers the calls of an instance that breaks, and closes its session', async () => {
  const supervised = new Supervised();
  const { ref, transport, breakDown } = await supervised.addHealthy('a#1');
  const ends: string[] = [];
  for (let call = 0; call < 3; call += 1) {
    ref.exchange({ method: 'tools/call' }).subscribe({
      error: (thrown: unknown) => ends.push(asGatewayError(thrown).delivered),
    });
  }
  breakDown();
  await settled();
  assert.equal([ends, transport.isClosed, ref.inFlight], [['unknown', 'unknown', 'unknown'], true, 0]);
  supervised.actor.stop();
});

test('closes what an instance opened that crashes at that moment', async () => {
  const supervised = new Supervised();
  const { opener, ref, breakDown } = supervised.add('a#1');
  breakDown();
  assert.is(ref.state, 'starting', 'nothing looked at the clock yet');
  const transport = opener.last.succeed();
  await settled();
  assert.equal([supervised.crashes, ref.state, transport.isClosed], [['a#1'], 'stopped', true]);
  supervised.actor.stop();
});

test('shows an instance that broke as stopped, which refuses what comes', async () => {
  const supervised = new Supervised();
  const { ref, heard, breakDown } = await supervised.addHealthy('a#1');
  breakDown();
  assert.equal(heard, ['starting', 'healthy', 'stopped', 'completed']);
  let delivered: string | undefined;
  ref.exchange({ method: 'ping' }).subscribe({
    error: (thrown: unknown) => {
      delivered = asGatewayError(thrown).delivered;
    },
  });
  assert.is(delivered, 'no');
  for (const command of [() => ref.drain(), () => ref.resume(), () => ref.restart(), () => ref.leave(0)])
    command();
  assert.is(ref.state, 'stopped');
  supervised.actor.stop();
});

test('outlives an instance that breaks while it starts', () => {
  const supervised = new Supervised();
  const opener = new ScriptedOpener();
  const input = {
    definition: definition(),
    policy: DEFAULT_POLICY,
    open: opener.open,
    now: () => {
      throw new Error('the clock is broken from the start');
    },
    random: () => 0.5,
    alarm: () => () => undefined,
  };
  supervised.actor.send({ type: 'instance.add', actorId: 'a#1', input });
  assert.equal([supervised.crashes, supervised.children], [['a#1'], []]);
  assert.is(supervised.actor.getSnapshot().status, 'active');
  supervised.actor.stop();
});

test('stops its instances with itself, and their callers are answered', async () => {
  const supervised = new Supervised();
  const members = [await supervised.addHealthy('a#1'), await supervised.addHealthy('a#2')];
  const ends: string[] = [];
  for (const { ref } of members) {
    ref
      .exchange({ method: 'ping' })
      .subscribe({ error: (thrown: unknown) => ends.push(asGatewayError(thrown).code) });
  }
  supervised.actor.stop();
  assert.equal(ends, ['BACKEND_UNAVAILABLE', 'BACKEND_UNAVAILABLE']);
  assert.ok(members.every(({ transport, ref }) => transport.isClosed && ref.state === 'stopped'));
});

test('starts one supervisor per template, at once', () => {
  const root = started();
  root.send({ type: 'template.open', template: 'weather' });
  root.send({ type: 'template.open', template: 'my.other-template' });
  assert.equal(Object.keys(root.getSnapshot().children), ['weather', 'my.other-template']);
  root.stop();
});

test('is not touched by an instance that breaks', () => {
  const root = started();
  root.send({ type: 'template.open', template: 'weather' });
  add(root, 'weather', true);
  assert.is(root.getSnapshot().status, 'active');
  assert.is(root.getSnapshot().children.weather?.getSnapshot().status, 'active');
  root.stop();
});

test('outlives a supervisor that breaks, and forgets it, so that the template can be opened again', () => {
  const root = started();
  root.send({ type: 'template.open', template: 'weather' });
  root.send({ type: 'template.open', template: 'other' });
  // A supervisor has no way to break that we know of; this is what it would say.
  root.send({ type: 'xstate.error.actor.weather', actorId: 'weather', error: new Error('it broke') });
  assert.is(root.getSnapshot().status, 'active');
  assert.equal(Object.keys(root.getSnapshot().children), ['other']);
  root.send({ type: 'template.open', template: 'weather' });
  assert.equal(Object.keys(root.getSnapshot().children), ['other', 'weather']);
  root.stop();
});

test('stops everything below with itself', async () => {
  const root = started();
  root.send({ type: 'template.open', template: 'weather' });
  const opener = add(root, 'weather');
  const transport = opener.last.succeed();
  await settled();
  root.stop();
  assert.is(transport.isClosed, true);
});

test('does not see the templates of another root', () => {
  const [one, other] = [started(), started()];
  one.send({ type: 'template.open', template: 'weather' });
  assert.equal(Object.keys(other.getSnapshot().children), []);
  one.stop();
  assert.is(other.getSnapshot().status, 'active');
  other.stop();
});

test('reports a crashed actor once, and starts others afterwards', async () => {
  const { supervisor, start, crashes } = open();
  const { ref, opener } = start('r', undefined, true);
  opener.last.succeed();
  await turn();
  assert.equal(crashes, [[ref, 'the clock is broken']]);
  const next = start('r');
  assert.is(next.ref.state, 'starting');
  supervisor.stop();
});

test.run();

function open() {
  const crashes: unknown[] = [];
  const supervisor = new InstanceSupervisor(({ ref }, error) => {
    crashes.push([ref, error instanceof Error ? error.message : error]);
  });
  const start = (template: string, before?: Promise<unknown>, isBroken = false) => {
    const opener = new ScriptedOpener();
    let isStarted = false;
    const now = () => {
      if (isBroken && isStarted) throw new Error('the clock is broken');
      return 0;
    };
    const ref = supervisor.start(
      {
        definition: definition({ template }),
        policy: DEFAULT_POLICY,
        open: opener.open,
        now,
        random: () => 0.5,
        alarm: () => () => undefined,
      },
      before,
    );
    isStarted = true;
    return { ref, opener };
  };
  return { supervisor, start, crashes };
}
