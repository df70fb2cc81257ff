// All templates on one page: problems, load, and the health of each template.

import { computed, signal, useSignal } from '@preact/signals';
import { mayWrite } from '../account.ts';
import { count, milliseconds, percent, plural, rate } from '../format.ts';
import { Bar, Cell } from '../parts/cell.tsx';
import { Chart, type Line } from '../parts/chart.tsx';
import { Icon } from '../parts/icon.tsx';
import { isNarrow } from '../parts/screen.ts';
import { Search } from '../parts/search.tsx';
import { Segments } from '../parts/segments.tsx';
import { Empty, Partial, Reading } from '../parts/status.tsx';
import { VirtualList } from '../parts/virtual-list.tsx';
import { type Problem, problems, summary } from '../problems.ts';
import { href } from '../router.ts';
import {
  balancers,
  minuteOf,
  missingNodes,
  past,
  readAll,
  samples,
  stateError,
  templateSamples,
  templates,
} from '../store.ts';
import type { HistoryPoint, Instance } from '../types.ts';

export function OverviewPage() {
  const error = stateError.value;
  const isLoaded = balancers.value !== undefined;
  return (
    <>
      <Partial nodes={missingNodes.value} />
      <div class="title">
        <h1>Overview</h1>
        {mayWrite.value && (
          <a class="button" href={href('register')}>
            <Icon name="plus" />
            Register an instance
          </a>
        )}
      </div>
      <Reading what="templates" isRead={isLoaded} error={error} reload={readAll} />
      {isLoaded && (
        <>
          <p class="lead">{summary.value}</p>
          <Problems />
          <Tiles />
          <Charts />
          <Templates />
        </>
      )}
    </>
  );
}

const SHOWN_PROBLEMS = 8;

function Problems() {
  const all = problems.value;
  if (all.length === 0) return null;
  return (
    <section aria-labelledby="problems">
      <h2 id="problems">Current problems</h2>
      <ul class="problems">
        {all.slice(0, SHOWN_PROBLEMS).map((problem) => (
          <ProblemRow key={`${problem.template} ${problem.text}`} {...problem} />
        ))}
      </ul>
      {all.length > SHOWN_PROBLEMS && (
        <p class="muted">And {plural(all.length - SHOWN_PROBLEMS, 'more problem')}.</p>
      )}
    </section>
  );
}

function ProblemRow({ level, template, text, detail }: Problem) {
  return (
    <li class={`callout ${level}`}>
      <Icon name={level} />
      <div>
        {template !== undefined && <a href={href('template', { name: template })}>{template}</a>} {text}
        {detail !== undefined && <p class="detail">{detail}</p>}
      </div>
    </li>
  );
}

function Tiles() {
  const sample = samples.value.at(-1);
  const totals = sample?.totals;
  const minute = lastMinute.value;
  return (
    <dl class="tiles">
      <Tile name="Requests, 1 min" value={minute && count(minute.requests)} />
      <Tile name="Failed, 1 min" value={minute && percent(minute.failures, Math.max(1, minute.requests))} />
      <Tile name="p95" value={totals && milliseconds(totals.p95_ms)} />
      <Tile name="In flight" value={totals && String(totals.in_flight)} />
      <Tile name="Waiting" value={totals && String(totals.queued)} />
      {totals?.sessions !== undefined && <Tile name="Sessions" value={String(totals.sessions)} />}
    </dl>
  );
}

function Tile({ name, value = '–' }: { readonly name: string; readonly value: string | undefined }) {
  return (
    <div class="tile">
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function perSecond({ totals, interval_ms }: HistoryPoint, name: 'requests' | 'failures'): number {
  return (totals[name] * 1_000) / (interval_ms || 1);
}

const RANGES = { '5 min': 300, '1 h': 3_600 } as const;
const range = signal<keyof typeof RANGES>('5 min');

/**
 * The points that the gateway kept until this page began to follow it, then the samples of each second. The first sample has no
 * interval, and no counts.
 */
const timeline = computed<readonly HistoryPoint[]>(() => {
  const live = samples.value.filter(({ interval_ms }) => interval_ms > 0);
  const [first] = live;
  const before = past.value.filter(({ at }) => first === undefined || at < first.at);
  return [...before, ...live];
});

/** Counts of the last minute, as in the list of templates; those of the gateway for the time before this page. */
const lastMinute = computed(() => {
  const points = timeline.value;
  const last = points.at(-1);
  if (last === undefined) return undefined;
  const sinceMs = Date.parse(last.at) - 60_000;
  const minute = points.filter(({ at }) => Date.parse(at) > sinceMs);
  const sum = (name: 'requests' | 'failures') =>
    minute.reduce((total, { totals }) => total + totals[name], 0);
  return { requests: sum('requests'), failures: sum('failures') };
});

/** Steps of 10 s for the hour, as the gateway keeps them. */
const charts = computed(() => {
  const all = range.value === '1 h' && past.value.length > 0 ? past.value : timeline.value;
  const sinceMs = Date.parse(all.at(-1)?.at ?? '') - RANGES[range.value] * 1_000;
  const kept = all.filter(({ at }) => Date.parse(at) >= sinceMs);
  const rates = (name: 'requests' | 'failures') => kept.map((sample) => perSecond(sample, name));
  const milli = (name: 'p50_ms' | 'p95_ms' | 'p99_ms') => kept.map(({ totals }) => totals[name]);
  const requests: readonly Line[] = [
    { name: 'all', color: '--accent', values: rates('requests') },
    { name: 'failed', color: '--bad', dash: '5 3', values: rates('failures') },
  ];
  const latencies: readonly Line[] = [
    { name: 'p50', color: '--ok', values: milli('p50_ms') },
    { name: 'p95', color: '--accent', dash: '6 3', values: milli('p95_ms') },
    { name: 'p99', color: '--warn', dash: '2 3', values: milli('p99_ms') },
  ];
  return { times: kept.map(({ at }) => Date.parse(at) / 1_000), requests, latencies };
});

function Charts() {
  const { times, requests, latencies } = charts.value;
  const shared = { times, shownSeconds: RANGES[range.value] };
  return (
    <section aria-label="Load">
      <Segments
        label="Range of the charts"
        options={(Object.keys(RANGES) as (keyof typeof RANGES)[]).map((name) => [name, name])}
        value={range.value}
        onChoose={(name) => {
          range.value = name;
        }}
      />
      <div class="charts">
        <Chart title="Requests" lines={requests} format={(value) => `${rate(value)}/s`} {...shared} />
        <Chart title="Latency" lines={latencies} format={milliseconds} {...shared} />
      </div>
    </section>
  );
}

function Templates() {
  const filter = useSignal('');
  const { used = [], unused = [] } = Object.groupBy([...templates.value], ([, members]) =>
    members.length > 0 ? 'used' : 'unused',
  );
  const shown = used.filter(([name]) => name.includes(filter.value));
  return (
    <section aria-labelledby="templates">
      <div class="title">
        <h2 id="templates">Templates</h2>
        <Search label="Filter templates" count={used.length} filter={filter} />
      </div>
      {used.length === 0 ? (
        <Empty title="No template has an instance yet.">
          <p>Register the endpoint of an MCP server, or a command that starts one.</p>
          {mayWrite.value && (
            <a class="button primary" href={href('register')}>
              Register an instance
            </a>
          )}
        </Empty>
      ) : (
        <div class="panel table templates">
          <div class="head" aria-hidden="true">
            <span>Template</span>
            <span>Healthy</span>
            <span class="number">Requests, 1 min</span>
            <span class="number">Failed, 1 min</span>
            <span class="number">p95</span>
            <span class="number">In flight</span>
          </div>
          {shown.length === 0 && <Empty title="No template matches." />}
          <VirtualList
            items={shown}
            keyOf={([name]) => name}
            rowHeight={isNarrow.value ? 100 : 52}
            label="Templates"
          >
            {([name, members]) => <TemplateRow name={name} members={members} />}
          </VirtualList>
        </div>
      )}
      {unused.length > 0 && mayWrite.value && (
        <p class="muted">
          Templates without an instance:{' '}
          {unused.map(([name], index) => (
            <span key={name}>
              {index > 0 && ', '}
              <a href={href('register', { template: name })}>{name}</a>
            </span>
          ))}
        </p>
      )}
    </section>
  );
}

interface TemplateRowProps {
  readonly name: string;
  readonly members: readonly Instance[];
}

function TemplateRow({ name, members }: TemplateRowProps) {
  const sample = templateSamples.value.get(name);
  const { requests, failures } = minuteOf({ template: name });
  const inFlight = sample?.in_flight ?? members.reduce((sum, each) => sum + each.in_flight, 0);
  return (
    <div class="row">
      <a class="strong cell-name" href={href('template', { name })}>
        {name}
      </a>
      <HealthyShare members={members} />
      <Cell name="requests">{sample === undefined ? '–' : count(requests)}</Cell>
      <Cell name="failed" tone={failures > 0 ? 'bad' : undefined}>
        {percent(failures, requests)}
      </Cell>
      <Cell name="p95">{milliseconds(sample?.p95_ms)}</Cell>
      <Cell name="in flight">{inFlight}</Cell>
    </div>
  );
}

/** The share of healthy instances, as a bar and in words: draining and stopped instances do not count. */
function HealthyShare({ members }: Pick<TemplateRowProps, 'members'>) {
  const counted = members.filter(({ state }) => state !== 'draining' && state !== 'stopped');
  const healthy = counted.filter((each) => each.healthy).length;
  const tone = healthy === counted.length ? 'ok' : healthy === 0 ? 'bad' : 'warn';
  const icon = tone === 'ok' ? 'healthy' : tone;
  if (counted.length === 0) return <span class="share muted">all draining</span>;
  return (
    <span class={`share tone-${tone}`}>
      <Icon name={icon} />
      {healthy} of {counted.length}
      <Bar part={healthy / counted.length} />
    </span>
  );
}
