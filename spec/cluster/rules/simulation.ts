// One schedule: a cluster, its faults, its clients, and what must hold afterwards. The same seed gives the same schedule.

import type { LifeRow } from '../../../src/cluster/rules/rows.ts';
import { type Cluster, SimulatedNode } from './simulated-node.ts';
import { NO_FAULTS, Violation, World } from './simulated-world.ts';

/**
 * `quiet`: no faults. `outage`: the database of all is away, answers get lost. `mixed`: everything. `split`: all nodes lose the database,
 * and a new one joins on its side. `lossy`: a third of all operations is lost, and nodes lose the database for long.
 * `deaf`: node after node refuses connections and serves on, while the database is slow. `kills`: one node after the other is killed again and
 * again, and starts again later.
 */
const PROFILES = [
  'quiet',
  'outage',
  'mixed',
  'mixed',
  'mixed',
  'mixed',
  'lossy',
  'lossy',
  'split',
  'deaf',
  'kills',
] as const;

/** Until here there are faults, in ms. */
const FAULTS_MS = 40_000;
/** After that nothing live is ended, in ms: what was seen before may still count for this time. */
const SETTLED_MS = 15_000;
/** A killed process is known to be gone after this time, in ms, as often as it was killed before. */
const NOTICED_MS = 3_000;
/** Until here all programs run, and all sessions are answered, in ms. */
const PROGRESS_MS = 75_000;
const UNSAFE_SHARE = 0.15;
/** Three sessions begin so often, in ms. */
const RENEWED_MS = 8_000;
const PROGRAMS = ['p0', 'p1', 'p2', 'p3'];

export interface Outcome {
  readonly seed: number;
  readonly steps: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly failure: string | undefined;
  readonly log: readonly string[];
}

export function simulate(
  seed: number,
  { isTraced = false, without }: { isTraced?: boolean; without?: Cluster['without'] } = {},
): Outcome {
  const world = new World(seed, isTraced);
  const counts: Record<string, number> = {};
  let failure: string | undefined;
  try {
    schedule(world, counts, without);
  } catch (thrown) {
    if (!(thrown instanceof Violation)) throw thrown;
    failure = thrown.message;
    world.note(() => `VIOLATION: ${thrown.message}`);
  }
  return { seed, steps: world.steps, counts, failure, log: world.log };
}

function schedule(world: World, counts: Record<string, number>, without: Cluster['without']): void {
  const { dice } = world;
  const profile = dice.pick(PROFILES);
  world.note(() => `profile ${profile}`);
  const size = profile === 'kills' ? 2 + dice.below(3) : 1 + dice.below(4);
  const unable = new Set<string>();
  if (profile === 'mixed' && size > 1 && dice.next() < 0.3) unable.add(`${PROGRAMS[0]} n${dice.below(size)}`);
  const isCalm = profile === 'quiet' || profile === 'outage';
  const refused = new Set<SimulatedNode | undefined>();
  const cluster: Cluster = {
    world,
    nodes: [],
    counts,
    unable,
    without,
    onEnd: (row, owner) => {
      judgeEnd(world, row, owner, isCalm || (profile === 'kills' && owner?.isAlive === true));
      if (row.end?.cause !== 'refused') return;
      if (refused.has(owner))
        throw new Violation(`${owner?.name} was ended twice for its refused connections`);
      refused.add(owner);
    },
    onKill: (node) => {
      if (isCalm || world.nowMs > FAULTS_MS + SETTLED_MS)
        throw new Violation(`${node.name} kills its programs without a cause`);
    },
  };
  for (const program of PROGRAMS.slice(0, 1 + dice.below(PROGRAMS.length)))
    world.programs.set(program, { program, life: undefined, generation: 0, failedOn: [] });
  for (let index = 0; index < size; index += 1)
    world.after(dice.next() < 0.7 ? 0 : world.between(0, 10_000), () => start(cluster, `n${index}`));
  clients(cluster);
  if (profile === 'outage') outage(world);
  if (profile === 'mixed') {
    const faults = 1 + dice.below(8);
    for (let count = 0; count < faults; count += 1)
      world.after(world.between(1_000, FAULTS_MS), () => fault(cluster));
    world.faults = badStore(world);
  }
  if (profile === 'split') split(cluster);
  if (profile === 'lossy') lossy(cluster);
  if (profile === 'deaf') deaf(cluster);
  if (profile === 'kills') kills(cluster);
  world.after(FAULTS_MS, () => heal(cluster));
  world.run(FAULTS_MS + SETTLED_MS);
  world.run(FAULTS_MS + PROGRESS_MS, () => isDone(cluster));
  progress(cluster);
}

function start(cluster: Cluster, id: string, machine = cluster.world.addMachine()): SimulatedNode {
  const node = new SimulatedNode(id, machine, cluster);
  cluster.nodes.push(node);
  return node;
}

/** Another node ended a life. */
function judgeEnd({ nowMs }: World, row: LifeRow, owner: SimulatedNode | undefined, isCalm: boolean): void {
  if (row.end?.cause === 'stopped') return;
  const isLive = owner?.isAlive === true && owner.state.own.life === row.life;
  if (isCalm || (isLive && nowMs > FAULTS_MS + SETTLED_MS))
    throw new Violation(`${row.life} of ${row.node} was ended without a cause: ${row.end?.cause}`);
}

/** The database does not answer any node, for less time than programs are kept. Answers before and after get lost. */
function outage(world: World): void {
  world.after(world.between(5_000, 20_000), () => {
    world.isStoreDown = true;
  });
  world.after(world.between(21_000, 24_000), () => {
    world.isStoreDown = false;
  });
}

/** All nodes lose the database; a new node, which does not reach them, has it. */
function split(cluster: Cluster): void {
  const { world } = cluster;
  const { dice } = world;
  const atMs = world.between(5_000, 25_000);
  world.after(atMs, () => {
    for (const { machine } of cluster.nodes) world.setLink(machine, 'store', false);
  });
  world.after(world.between(Math.max(0, atMs - 4_000), atMs + 5_000), () => {
    const others = [...cluster.nodes];
    const { machine } = start(cluster, 'x');
    if (dice.next() < 0.8) for (const other of others) world.setLink(machine, other.machine, false);
  });
}

/** Each node in turn loses the database, for longer than a lease. */
function lossy(cluster: Cluster): void {
  const { world } = cluster;
  world.faults = { ...NO_FAULTS, lost: 0.3 * world.dice.next(), late: 0.2, doubled: 0.3, slow: 0.5 };
  for (let atMs = world.between(2_000, 8_000); atMs < FAULTS_MS; atMs += world.between(2_000, 12_000))
    world.after(atMs, () => {
      const machine = cluster.nodes[world.dice.below(cluster.nodes.length)]?.machine;
      if (machine === undefined) return;
      world.setLink(machine, 'store', false);
      world.after(Math.min(world.between(8_000, 20_000), FAULTS_MS - world.nowMs), () =>
        world.setLink(machine, 'store', true),
      );
    });
}

/** The lives of nodes end, one after the other, before they know it. */
function deaf(cluster: Cluster): void {
  const { world } = cluster;
  world.faults = { ...NO_FAULTS, slow: 0.7 };
  for (let atMs = 4_000; atMs < FAULTS_MS; atMs += world.between(3_000, 5_000))
    world.after(atMs, () => {
      const node = cluster.nodes[world.dice.below(cluster.nodes.length)];
      if (node !== undefined) node.isDeaf = true;
      start(cluster, `j${cluster.nodes.length}`);
    });
}

/** Each is noticed soon: by the others, because its process did not start again before. */
function kills(cluster: Cluster): void {
  const { world } = cluster;
  for (let atMs = 12_000; atMs < FAULTS_MS - NOTICED_MS; atMs += world.between(5_000, 8_000))
    world.after(atMs, () => {
      const others = cluster.nodes.filter(({ isAlive }) => isAlive);
      const node = world.dice.next() < 0.7 ? others.find(({ id }) => id === 'n0') : world.dice.pick(others);
      if (node === undefined || others.length < 2) return;
      const { life } = node.state.own;
      node.kill();
      world.after(NOTICED_MS, () => {
        if (world.lives.get(life)?.end === undefined)
          throw new Violation(`${life} of ${node.name} has not ended ${NOTICED_MS} ms after it was killed`);
        start(cluster, node.id, node.machine);
      });
    });
}

function badStore(world: World): World['faults'] {
  const { dice } = world;
  const some = (most: number): number => (dice.next() < 0.5 ? 0 : dice.next() * most);
  return {
    lost: some(0.1),
    unanswered: some(0.2),
    late: some(0.1),
    doubled: some(0.2),
    answeredTwice: some(0.2),
    slow: some(0.3),
  };
}

/** One fault; those that last end by themselves, or when all are healed. */
function fault(cluster: Cluster): void {
  const { world, nodes } = cluster;
  const { dice } = world;
  const alive = nodes.filter(({ isAlive }) => isAlive);
  const node = alive[dice.below(alive.length)];
  if (node === undefined) return;
  const mostMs = dice.next() < 0.5 ? 5_000 : 25_000;
  const lastsMs = Math.min(world.between(500, mostMs), FAULTS_MS - world.nowMs);
  const { machine } = node;
  const cutFor = (a: SimulatedNode['machine'], b: SimulatedNode['machine'] | 'store'): void => {
    world.setLink(a, b, false);
    world.after(lastsMs, () => world.setLink(a, b, true));
  };
  const kind = dice.below(12);
  world.note(() => `fault ${kind} at ${node.name} for ${Math.round(lastsMs)} ms`);
  if (kind <= 1) node.frozenUntilMs = world.nowMs + lastsMs;
  else if (kind <= 3) {
    node.kill();
    const again = dice.next();
    if (again < 0.7)
      world.after(world.between(100, 8_000), () =>
        start(cluster, node.id, again < 0.5 ? machine : world.addMachine()),
      );
  } else if (kind === 4) cutFor(machine, 'store');
  else if (kind === 5) for (const other of nodes) if (other !== node) cutFor(machine, other.machine);
  if (kind === 6) {
    cutFor(machine, 'store');
    for (const other of nodes) if (other.machine !== machine) cutFor(machine, other.machine);
  } else if (kind === 7) {
    world.isStoreDown = true;
    world.after(lastsMs, () => {
      world.isStoreDown = false;
    });
  } else if (kind === 8) {
    node.isDeaf = true;
    world.after(lastsMs, () => {
      node.isDeaf = false;
    });
  } else if (kind === 9) start(cluster, `j${nodes.length}`);
  else if (kind === 10) {
    if (dice.next() < 0.5) world.suspend(machine, lastsMs);
    else node.slowMs = 700;
  } else if (kind === 11 && !node.isStopping) {
    node.isStopping = true;
    node.handle({ type: 'drain', isDraining: true });
  }
}

function heal(cluster: Cluster): void {
  const { world } = cluster;
  world.note(() => 'healed');
  world.cut.clear();
  world.isStoreDown = false;
  world.faults = NO_FAULTS;
  for (const node of cluster.nodes) {
    node.frozenUntilMs = Math.min(node.frozenUntilMs, world.nowMs);
    node.isDeaf = false;
    node.slowMs = 0;
  }
  if (!cluster.nodes.some(isServing)) start(cluster, 'last');
}

/**
 * Clients at any nodes. Sessions go on and others begin all the time, so that there are some without an unsafe call whenever a life ends. Some
 * clients send several requests at once.
 */
function clients(cluster: Cluster): void {
  const { world } = cluster;
  const { dice } = world;
  const ask = (session: string): void => {
    const node = cluster.nodes[dice.below(cluster.nodes.length)];
    if (!node?.isRunning) return;
    if (!world.sessions.has(session)) node.sessions.open(session);
    else node.sessions.request(session, dice.next() < UNSAFE_SHARE, (outcome) => count(cluster, outcome));
  };
  const next = (): void => {
    const batch = Math.max(0, Math.floor(world.nowMs / RENEWED_MS) - dice.below(3));
    const session = `s${batch}.${dice.below(3)}`;
    const requests = dice.next() < 0.3 ? 4 : 1;
    for (let count = 0; count < requests; count += 1) ask(session);
    if (world.nowMs < FAULTS_MS + 5_000) world.after(world.between(20, 300), next);
  };
  world.after(500, next);
}

function isServing({ isAlive, isStopping }: SimulatedNode): boolean {
  return isAlive && !isStopping;
}

function isDone(cluster: Cluster): boolean {
  const { world } = cluster;
  const serving = cluster.nodes.filter(isServing);
  return [...world.programs.values()].every(({ program, life, failedOn }) => {
    if (serving.every(({ id }) => failedOn.includes(id) || cluster.unable.has(`${program} ${id}`)))
      return true;
    const holder = serving.find(({ state }) => state.own.life === life);
    return (
      holder?.machine.groups.has(program) === true && holder.state.programs.get(program)?.phase === 'running'
    );
  });
}

/** Every program runs, and every session is answered: its owner serves it, or a claim, or 404 where it may not move. */
function progress(cluster: Cluster): void {
  const { world } = cluster;
  if (!isDone(cluster)) throw new Violation('not every program runs');
  const waiting = new Set(world.sessions.keys());
  let last = '';
  while (waiting.size > 0) {
    if (world.nowMs > FAULTS_MS + PROGRESS_MS)
      throw new Violation(`the session ${[...waiting][0]} is not served: ${last}`);
    for (const session of waiting) {
      const node = world.dice.pick(cluster.nodes.filter(isServing));
      node.sessions.request(session, false, (outcome) => {
        last = outcome;
        if (outcome === 'served' || outcome === '404') waiting.delete(session);
      });
    }
    world.run(world.nowMs + 2_000);
  }
}

function count({ counts }: Cluster, what: string): void {
  counts[what] = (counts[what] ?? 0) + 1;
}
