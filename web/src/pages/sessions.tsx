// The sessions of MCP clients: client, owner, binding and age; and the action that ends one.

import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { isAdmin } from '../account.ts';
import { change } from '../api.ts';
import { day, duration, plural } from '../format.ts';
import { Cell } from '../parts/cell.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { usePages } from '../parts/load.ts';
import { More } from '../parts/more.tsx';
import { isNarrow } from '../parts/screen.ts';
import { Empty, Partial, Reading } from '../parts/status.tsx';
import { TemplateSelect } from '../parts/template-select.tsx';
import { VirtualList } from '../parts/virtual-list.tsx';
import { href, route, setParams } from '../router.ts';
import { gatewayNow, MISSING_READ_MS, sessionChanges, templates } from '../store.ts';

interface Session {
  /** The fingerprint of the session: the id itself is a credential. */
  readonly id: string;
  readonly principal: string;
  readonly principal_name: string | null;
  readonly client: { readonly name: string | null; readonly version: string | null };
  readonly bindings: readonly { readonly template: string; readonly instance_id: string }[];
  readonly created_at: string;
  readonly last_used_at: string;
  readonly is_streaming: boolean;
}

const FILTERS = ['template', 'principal'];

export function SessionsPage() {
  const ending = useSignal<Session>();
  const { params } = route.value;
  const wanted = new URLSearchParams([...params].filter(([name]) => FILTERS.includes(name)));
  const pages = usePages<Session, 'sessions'>(`gateway/sessions?${wanted}`, 'sessions', sessionChanges.value);
  const { items, partial, error, reload, more } = pages;
  const end = ending.value;
  useEffect(() => {
    if (partial.length === 0) return;
    const timer = setTimeout(reload, MISSING_READ_MS);
    return () => clearTimeout(timer);
  }, [partial]);
  return (
    <>
      <Partial nodes={partial} />
      <div class="title">
        <h1>Sessions</h1>
        <Filters />
      </div>
      <Reading what="sessions" isRead={items !== undefined} error={error} reload={reload} />
      {items?.length === 0 && <NoSession isFiltered={wanted.size > 0} />}
      {items !== undefined && items.length > 0 && (
        <section aria-label="Sessions">
          <p class="muted">
            {plural(items.length, 'session')}
            {more && ', and more'}
          </p>
          <SessionTable
            items={items}
            onEnd={(session) => {
              ending.value = session;
            }}
          />
          <More {...pages} />
        </section>
      )}
      {end !== undefined && (
        <Confirm
          title="End this session?"
          text="Its client opens a new one if it can. What its server kept for it is lost."
          action="End the session"
          run={() => change('DELETE', `gateway/sessions/${encodeURIComponent(end.id)}`)}
          done="The session is ended."
          onDone={reload}
          onClose={() => {
            ending.value = undefined;
          }}
        />
      )}
    </>
  );
}

function NoSession({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No session matches." />;
  return (
    <Empty title="No client has a session.">
      <p>Only clients of MCP 2025-11-25 and before have one.</p>
    </Empty>
  );
}

interface SessionTableProps {
  readonly items: readonly Session[];
  readonly onEnd: (session: Session) => void;
}

function SessionTable({ items, onEnd }: SessionTableProps) {
  return (
    <div class="panel table sessions">
      <div class="head" aria-hidden="true">
        <span>Client</span>
        <span>Owner</span>
        <span>Bound to</span>
        <span>Opened</span>
        <span>Last used</span>
        <span />
      </div>
      <VirtualList
        items={items}
        keyOf={({ id }) => id}
        rowHeight={isNarrow.value ? 146 : 60}
        label="Sessions"
      >
        {(session) => <SessionRow session={session} onEnd={() => onEnd(session)} />}
      </VirtualList>
    </div>
  );
}

function Filters() {
  return (
    <div class="actions">
      {isAdmin.value && (
        <input
          type="search"
          aria-label="Owner"
          placeholder="Owner: name or id"
          value={route.value.params.get('principal') ?? ''}
          onChange={(event) => setParams({ principal: event.currentTarget.value })}
        />
      )}
      <TemplateFilter />
    </div>
  );
}

/** The filter by template, separate from the other filter, whose typed text would be lost with each change of a template. */
function TemplateFilter() {
  return (
    <TemplateSelect
      names={['', ...templates.value.keys()]}
      value={route.value.params.get('template') ?? ''}
      onChange={(template) => setParams({ template })}
    />
  );
}

function SessionRow({ session, onEnd }: { readonly session: Session; readonly onEnd: () => void }) {
  const { id, client, principal, principal_name: owner, bindings, is_streaming } = session;
  const name = client.name ?? 'A client';
  return (
    <div class="row">
      <div class="cell-name">
        <span class="strong" title={name}>
          {name} {client.version}
        </span>
        <div class="cut small muted mono">{id}</div>
      </div>
      <div class="cut" title={principal}>
        <span class="key">owner</span>
        {isAdmin.value ? (
          <a href={href('sessions', { principal })}>{owner ?? principal}</a>
        ) : (
          (owner ?? principal)
        )}
      </div>
      <div class="cut">
        <span class="key">bound to</span>
        {bindings.length === 0 && <span class="muted">no instance yet</span>}
        {bindings.map(({ template, instance_id }, index) => (
          <span key={template}>
            {index > 0 && ', '}
            <a href={href('template', { name: template, instance: instance_id })}>{instance_id}</a>
          </span>
        ))}
        {is_streaming && <div class="small muted">listens</div>}
      </div>
      <Cell name="opened">{day(session.created_at)}</Cell>
      <Cell name="last used">{duration(gatewayNow() - Date.parse(session.last_used_at))} ago</Cell>
      <span class="actions end">
        <button type="button" class="small" aria-label={`End the session of ${name}`} onClick={onEnd}>
          End
        </button>
      </span>
    </div>
  );
}
