// `npm run cluster`: real gateways behind a round-robin balancer without stickiness, clients of the official SDKs of both eras, and one
// fault after the other (cluster/faults.ts). A checker judges the history of every call (cluster/history.ts). Prints each bar, the
// figure, and pass or miss; exits 1 when a bar is missed. docs/explanation/cluster.md explains the figures.

import { parseArgs } from 'node:util';
import { CallingClient } from './cluster/clients.ts';
import { startDeployment } from './cluster/deployment.ts';
import { FAULTS, type Fault, RUN_LENGTHS, type RunLength } from './cluster/faults.ts';
import type { HerdOptions } from './cluster/herd.ts';
import type { HerdRecord, IdleLoad, NodeLoad } from './cluster/herd-verdicts.ts';
import { Herds } from './cluster/herds.ts';
import { countsOf, type History, judge } from './cluster/history.ts';
import { whyNoNetworks } from './cluster/network.ts';
import { PROFILED } from './cluster/node-loads.ts';
import { watchOwners } from './cluster/owner-watch.ts';
import type { Verdict } from './cluster/verdict.ts';
import { seeded } from './seeded.ts';
import { answerHelp } from './usage.ts';

interface Outcome {
  readonly fault: string;
  readonly what: string;
  readonly counts: Readonly<Record<string, number>>;
  readonly verdicts: readonly Verdict[];
}

const STREAMS: Record<NonNullable<Fault['herd']>, HerdOptions['streams']> = {
  'with streams': 'open',
  'with news': 'read',
  idle: 'none',
};
/** Of each fault. */
const SECONDS: Record<RunLength, number> = { quick: 10, standard: 25, long: 120 };
/** The first client of a group only reads, the second often does more, the third seldom; and so on. */
const UNSAFE_SHARES = [0, 0.5, 0.05];

answerHelp(`npm run cluster -- [options]
  --only A,B         faults: ${FAULTS.map(({ name }) => name).join(', ')}
  --seed N           other times and another mix (default 1)
  --seconds N        of each fault (default 25)
  --clients N        times the clients of the fault (default 1)
  --port N           first port of the nodes (default: a random one, which no connection takes while its node is away)
  --kind NAME        only these clients: legacy, sse, "bare sse", asked, modern or plain
  --database mariadb instead of PostgreSQL
  --sessions N       of the faults herd, news and idle (default 3,000)
  --profile FOLDER   profiles of the nodes that go on, for herd
  --quick            a few faults for 10 s each, as in .ci/run
  --long             all faults for 120 s each
  --json             figures only
Exits with 1 when a bar is missed.
`);
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    only: { type: 'string' },
    seconds: { type: 'string' },
    clients: { type: 'string', default: '1' },
    port: { type: 'string' },
    kind: { type: 'string' },
    database: { type: 'string' },
    sessions: { type: 'string', default: '3000' },
    profile: { type: 'string' },
    quick: { type: 'boolean', default: false },
    long: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});

if (values.database !== undefined && values.database !== 'mariadb')
  throw new Error(`--database knows mariadb, not "${values.database}"`);
const length: RunLength = values.quick ? 'quick' : values.long ? 'long' : 'standard';
const faults = chosen(values.only?.split(','));
const seconds = Number(values.seconds ?? SECONDS[length]);
const print = (text: string): void => {
  if (!values.json) process.stdout.write(`${text}\n`);
};
const outcomes: Outcome[] = [];
let skipped = 0;
for (const fault of faults) {
  const reason = fault.hasNetworks ? await whyNoNetworks() : undefined;
  if (reason !== undefined) {
    skipped += 1;
    print(`${fault.name}: skipped: ${reason}\n`);
    continue;
  }
  const outcome = await outcomeOf(fault, seconds, Number(values.seed));
  outcomes.push(outcome);
  print(textOf(outcome));
}
if (values.json) process.stdout.write(`${JSON.stringify(outcomes, null, 2)}\n`);
const verdicts = outcomes.flatMap((outcome) => outcome.verdicts);
const missed = verdicts.filter(({ isMet }) => !isMet).length;
print(`${verdicts.length - missed} passed, ${missed} failed, ${skipped} skipped`);
process.exit(missed === 0 ? 0 : 1);

function chosen(names: readonly string[] | undefined): readonly Fault[] {
  const unknown = names?.find((name) => !FAULTS.some((fault) => fault.name === name));
  if (unknown !== undefined)
    throw new Error(`--only knows ${FAULTS.map(({ name }) => name).join(', ')}, not "${unknown}"`);
  const runs = RUN_LENGTHS.slice(0, RUN_LENGTHS.indexOf(length) + 1);
  return FAULTS.filter(({ name, shortestRun }) => names?.includes(name) ?? runs.includes(shortestRun));
}

async function outcomeOf(fault: Fault, seconds: number, seed: number): Promise<Outcome> {
  const random = seeded(seed * 31 + FAULTS.indexOf(fault));
  const isOther = values.database === 'mariadb' && fault.database === 'PostgreSQL';
  const profiles = values.profile;
  const deployment = await startDeployment({
    ...fault,
    ...(isOther ? { database: 'MariaDB' } : {}),
    ...(values.port === undefined ? {} : { firstPort: Number(values.port) }),
    settings: { ...fault.settings, ...(profiles === undefined ? {} : PROFILED) },
  });
  const groups = fault.clients.filter(({ kind }) => kind === (values.kind ?? kind));
  const clients = fault.templates.flatMap((template) =>
    groups
      .filter((group) => template === (group.template ?? template))
      .flatMap(({ count, ...group }) =>
        Array.from({ length: count * Number(values.clients) }, (_, index) => {
          const name = `${template}-${group.kind.replace(' ', '-')}-${index + 1}`;
          const url = new URL(`${deployment.balancer.origin}/mcp/${template}`);
          const unsafeShare = UNSAFE_SHARES[index % UNSAFE_SHARES.length] ?? 0;
          return new CallingClient({ ...group, name, url, headers: deployment.key, unsafeShare, random });
        }),
      ),
  );
  const herd = fault.herd
    ? new Herds(
        {
          ports: deployment.nodes.map(({ port }) => port),
          path: `/mcp/${fault.templates[0]}`,
          headers: deployment.key,
          streams: STREAMS[fault.herd],
          seed,
        },
        Number(values.sessions),
      )
    : undefined;
  const load: NodeLoad[] = [];
  const idle: IdleLoad[] = [];
  let isOver = false;
  let disturbances: History['disturbances'] = [];
  let running: Promise<unknown> = Promise.resolve();
  let carriedOut: History['carriedOut'] = [];
  let leftOver = 0;
  let record: HerdRecord | undefined;
  const hasOwners = fault.database !== 'SQLite' && fault.herd === undefined;
  const watch = hasOwners ? await watchOwners(deployment.databaseUrl) : undefined;
  const runner = () => deployment.nodes.find(({ id }) => id === watch?.runner());
  try {
    if (fault.herd === 'with streams') await herd?.open();
    running = Promise.all(clients.map((client) => client.run(() => isOver)));
    disturbances = await fault.disturb({ deployment, runner, random, seconds, herd, load, idle, profiles });
    isOver = true;
    await running;
    carriedOut = await deployment.carriedOut();
    record = await herd?.record();
  } finally {
    isOver = true;
    herd?.close();
    await watch?.stop();
    leftOver = await deployment.close();
  }
  const history: History = {
    calls: clients.flatMap(({ calls }) => calls),
    carriedOut,
    disturbances,
    programs: deployment.programs,
    failedOpenings: clients.flatMap(({ failedOpenings }) => failedOpenings),
    owners: watch?.owners,
    leftOver,
    herd: record,
    load,
    idle,
  };
  return {
    fault: fault.name,
    what: isOther ? fault.what.replace('PostgreSQL', 'MariaDB') : fault.what,
    counts: countsOf(history),
    verdicts: judge(history, fault.bars),
  };
}

function textOf({ fault, what, counts, verdicts }: Outcome): string {
  const figures = Object.entries(counts).map(([name, count]) => `${name} ${count}`);
  const lines = verdicts.flatMap(({ bar, found, isMet, examples }) => [
    `  ${isMet ? 'pass' : 'MISS'}  ${bar}: ${found}`,
    ...(isMet ? [] : examples.map((example) => `          ${example}`)),
  ]);
  return [`${fault}: ${what}`, `  ${figures.join(', ')}`, ...lines, ''].join('\n');
}
