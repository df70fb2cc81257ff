// The tree of actors: the root, a supervisor per template, and the instances below it.

import * as assert from 'uvu/assert';
import { type Actor, createActor, SimulatedClock } from 'xstate';
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

test('outlives a supervisor that breaks, and forgets it, so that the template can be opened again', () => {
  const root = createActor(rootMachine, { clock: new SimulatedClock() });
  root.start();
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

test.run();
