// The audit log, for admins: changes, sign-ins and calls of tools, with filters in the address of the page.

import { useMemo } from 'preact/hooks';
import { clock, day, milliseconds, plural } from '../format.ts';
import { Cell } from '../parts/cell.tsx';
import { DetailRow } from '../parts/detail-row.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Field } from '../parts/field.tsx';
import { usePages } from '../parts/load.ts';
import { More } from '../parts/more.tsx';
import { Output } from '../parts/result.tsx';
import { isNarrow } from '../parts/screen.ts';
import { Badge } from '../parts/state.tsx';
import { Empty, Reading } from '../parts/status.tsx';
import { VirtualList } from '../parts/virtual-list.tsx';
import { href, navigate, route, setParams } from '../router.ts';

interface Entry {
  readonly id: string;
  readonly at: string;
  readonly actor: string;
  readonly actor_name: string;
  readonly action: string;
  readonly subject: string;
  readonly status: number;
  readonly address: string | null;
  readonly request_id: string | null;
  readonly suppressed?: number;
  readonly call: {
    readonly template: string;
    readonly tool: string;
    readonly view: string | null;
    readonly instance_id: string | null;
    readonly outcome: string;
    readonly duration_ms: number;
    readonly attempts: number;
    readonly arguments_sha256: string | null;
    readonly arguments: string | null;
  } | null;
}

const OUTCOMES: Readonly<Record<string, string>> = {
  result: 'Result',
  tool_error: 'Tool error',
  error: 'Error',
  failed: 'Failed',
  cancelled: 'Cancelled',
};

/** Fields of the query, with their labels and placeholders. */
const TEXTS = {
  actor: ['Actor', 'Name or id'],
  action: ['Action', 'tools/call'],
  template: ['Template', 'everything'],
  tool: ['Tool', 'echo'],
  view: ['View', 'support'],
  status: ['Status', '403'],
} as const;
const TIMES = { from: 'From', to: 'Until' } as const;
const FILTERS = [...Object.keys(TEXTS), 'outcome', ...Object.keys(TIMES)];

export function AuditPage() {
  const { params } = route.value;
  const wanted = new URLSearchParams([...params].filter(([name]) => FILTERS.includes(name)));
  const pages = usePages<Entry, 'entries'>(`gateway/audit?${wanted}`, 'entries');
  const { items, error, reload, isBusy } = pages;
  const open = items?.find(({ id }) => id === params.get('entry'));
  const asOf = useMemo(() => clock(Date.now()), [items]);
  return (
    <>
      <div class="title">
        <h1>Audit log</h1>
        <div class="actions">
          {items && <span class="muted">As of {asOf}</span>}
          <button type="button" disabled={isBusy} onClick={reload}>
            Refresh
          </button>
        </div>
      </div>
      <Filters isUsed={wanted.size > 0} />
      <Reading what="the audit log" isRead={items !== undefined} error={error} reload={reload} />
      {items?.length === 0 && (
        <Empty title={wanted.size > 0 ? 'No entry matches.' : 'Nothing is recorded yet.'}>
          <p>Changes, sign-ins and calls of tools are recorded. Names and ids must match as a whole.</p>
        </Empty>
      )}
      {items !== undefined && items.length > 0 && (
        <section aria-label="Entries">
          <div class="panel table audit">
            <div class="head" aria-hidden="true">
              <span>Time</span>
              <span>Actor</span>
              <span>Action</span>
              <span>Outcome</span>
              <span class="number">Duration</span>
            </div>
            <VirtualList
              items={items}
              keyOf={({ id }) => id}
              rowHeight={isNarrow.value ? 108 : 60}
              label="Entries, newest first"
            >
              {(entry) => <EntryRow entry={entry} />}
            </VirtualList>
          </div>
          <More {...pages} />
        </section>
      )}
      {open && <EntryDrawer entry={open} />}
    </>
  );
}

function Filters({ isUsed }: { readonly isUsed: boolean }) {
  const { params } = route.value;
  const set = (event: Event): void => {
    const { name, value, type } = event.target as HTMLInputElement;
    setParams({ [name]: type === 'datetime-local' && value !== '' ? new Date(value).toISOString() : value });
  };
  return (
    <details class="panel padded" open={isUsed || !isNarrow.value}>
      <summary>Filter</summary>
      <form class="columns filters" onChange={set} onSubmit={(event) => event.preventDefault()}>
        {Object.entries(TEXTS).map(([name, [label, example]]) => (
          <Field key={name} label={label}>
            <input name={name} type="search" placeholder={example} value={params.get(name) ?? ''} />
          </Field>
        ))}
        <Field label="Outcome of a call">
          <select name="outcome" value={params.get('outcome') ?? ''}>
            <option value="">All</option>
            {Object.entries(OUTCOMES).map(([value, word]) => (
              <option key={value} value={value}>
                {word}
              </option>
            ))}
          </select>
        </Field>
        {Object.entries(TIMES).map(([name, label]) => (
          <Field key={name} label={label}>
            <input name={name} type="datetime-local" value={localTime(params.get(name))} />
          </Field>
        ))}
      </form>
      {isUsed && (
        <div class="actions end">
          <button type="button" class="plain" onClick={() => navigate(href('audit'))}>
            Clear all
          </button>
        </div>
      )}
    </details>
  );
}

/** The local time in the form of the control, to the minute. */
function localTime(at: string | null): string {
  const ms = Date.parse(at ?? '');
  if (Number.isNaN(ms)) return '';
  return new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function EntryRow({ entry }: { readonly entry: Entry }) {
  const { id, at, actor, actor_name, action, subject, call } = entry;
  return (
    <div class="row">
      <span class="cell-time" title={day(at)}>
        {clock(at)}
        <div class="small muted">{day(at).replace(/,.*/, '')}</div>
      </span>
      <span class="cut" title={actor}>
        {actor_name}
      </span>
      <div class="cut">
        <button type="button" class="link cut" onClick={() => setParams({ entry: id })}>
          {call?.tool ?? action}
        </button>
        <div class="cut small muted">{call?.template ?? subject}</div>
      </div>
      <EntryOutcome entry={entry} />
      <Cell name="duration">{milliseconds(call?.duration_ms)}</Cell>
    </div>
  );
}

function EntryOutcome({ entry: { call, status } }: { readonly entry: Entry }) {
  if (call?.outcome === 'cancelled') return <Badge tone="idle" icon="stopped" word="Cancelled" />;
  if (call === null ? status < 400 : call.outcome === 'result')
    return (
      <Badge
        tone="ok"
        icon="healthy"
        word={call === null ? `Done${status === 0 ? '' : ` ${status}`}` : 'Result'}
      />
    );
  const word = call === null ? 'Refused' : (OUTCOMES[call.outcome] ?? call.outcome);
  return <Badge tone="bad" icon="bad" word={status >= 400 ? `${word} ${status}` : word} />;
}

function EntryDrawer({ entry }: { readonly entry: Entry }) {
  const { at, actor, actor_name, action, subject, status, address, request_id, suppressed, call } = entry;
  return (
    <Dialog title={call?.tool ?? action} onClose={() => setParams({ entry: undefined })} isDrawer>
      <div class="actions">
        <EntryOutcome entry={entry} />
      </div>
      <dl class="details">
        <DetailRow name="Time">
          {day(at)}, {clock(at)}
        </DetailRow>
        <DetailRow name="Actor">
          <a href={href('audit', { actor })}>{actor_name}</a>
          <div class="small muted mono">{actor}</div>
        </DetailRow>
        {address !== null && <DetailRow name="Address">{address}</DetailRow>}
        <DetailRow name="Action">{action}</DetailRow>
        <DetailRow name="Subject">{subject}</DetailRow>
        <DetailRow name="Status">{status === 0 ? 'made on the database, without HTTP' : status}</DetailRow>
        {suppressed !== undefined && <DetailRow name="Suppressed">{plural(suppressed, 'request')}</DetailRow>}
        {call !== null && (
          <>
            <DetailRow name="Template">
              <a href={href('template', { name: call.template })}>{call.template}</a>
            </DetailRow>
            {call.view !== null && (
              <DetailRow name="View">
                <a href={href('audit', { view: call.view })}>{call.view}</a>
              </DetailRow>
            )}
            <DetailRow name="Instance">{call.instance_id ?? 'none'}</DetailRow>
            <DetailRow name="Attempts">{call.attempts}</DetailRow>
            <DetailRow name="Duration">{milliseconds(call.duration_ms)}</DetailRow>
            <DetailRow name="SHA-256 of the arguments">
              <span class="mono">{call.arguments_sha256 ?? '–'}</span>
            </DetailRow>
          </>
        )}
        {request_id !== null && (
          <DetailRow name="Request">
            <span class="mono">{request_id}</span>
          </DetailRow>
        )}
      </dl>
      {call?.arguments && (
        <section>
          <h3>Arguments</h3>
          <Output text={call.arguments} />
        </section>
      )}
      {call !== null && request_id !== null && (
        <a href={href('activity', { filter: request_id })}>Show its attempts (recent calls only)</a>
      )}
    </Dialog>
  );
}
