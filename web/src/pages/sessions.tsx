// The sessions of MCP clients: which client, where it is bound, since when; and ending one.

import { useSignal } from '@preact/signals';
import { change, get } from '../api.ts';
import { day, duration, plural } from '../format.ts';
import { Cell } from '../parts/cell.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { useLoaded } from '../parts/load.ts';
import { attempt } from '../parts/notices.tsx';
import { isNarrow } from '../parts/screen.ts';
import { Empty, Failure, Loading } from '../parts/status.tsx';
import { VirtualList } from '../parts/virtual-list.tsx';
import { href } from '../router.ts';
import { samples, sessionChanges } from '../store.ts';

interface Session {
  /** Its fingerprint: the id itself is a credential. */
  readonly id: string;
  readonly principal: string;
  readonly client?: { readonly name: string; readonly version?: string };
  readonly bindings: readonly { readonly template: string; readonly instance_id: string }[];
  readonly created_at: string;
  readonly last_used_at: string;
  readonly is_streaming: boolean;
}

interface Page {
  readonly sessions: readonly Session[];
  readonly next_cursor: string | null;
}

export function SessionsPage() {
  const ending = useSignal<Session | undefined>(undefined);
  const { data, error, reload } = useLoaded(() => get<Page>('gateway/sessions'), [sessionChanges.value]);
  const end = ending.value;
  return (
    <>
      <h1>Sessions</h1>
      {error !== undefined && <Failure text={error} onRetry={reload} />}
      {data === undefined && error === undefined && <Loading what="sessions" />}
      {data?.sessions.length === 0 && (
        <Empty title="No client has a session.">
          <p>Clients of MCP 2025-11-25 and before have one. Clients of later revisions make calls without.</p>
        </Empty>
      )}
      {data !== undefined && data.sessions.length > 0 && (
        <section aria-label="Sessions">
          <p class="muted">
            {plural(data.sessions.length, 'session')}
            {data.next_cursor === null ? '' : ', and more: these are the first'}
          </p>
          <div class="panel table sessions">
            <div class="head" aria-hidden="true">
              <span>Client</span>
              <span>Bound to</span>
              <span>Opened</span>
              <span>Last used</span>
              <span />
            </div>
            <VirtualList
              items={data.sessions}
              keyOf={({ id }) => id}
              rowHeight={isNarrow.value ? 132 : 60}
              label="Sessions"
            >
              {(session) => (
                <SessionRow
                  session={session}
                  onEnd={() => {
                    ending.value = session;
                  }}
                />
              )}
            </VirtualList>
          </div>
        </section>
      )}
      {end !== undefined && (
        <Confirm
          title="End this session?"
          text="Its client gets the answer that the session is unknown, and opens a new one if it can. What its server kept for it is lost."
          action="End the session"
          onConfirm={async () => {
            await attempt(
              () => change('DELETE', `gateway/sessions/${encodeURIComponent(end.id)}`),
              'The session is ended.',
            );
            reload();
          }}
          onClose={() => {
            ending.value = undefined;
          }}
        />
      )}
    </>
  );
}

function SessionRow({ session, onEnd }: { readonly session: Session; readonly onEnd: () => void }) {
  const { client, principal, bindings, created_at, last_used_at, is_streaming } = session;
  // Read, so that the time since the last use goes on.
  void samples.value;
  return (
    <div class="row">
      <div class="cell-name">
        <span class="strong">
          {client === undefined ? 'A client' : `${client.name} ${client.version ?? ''}`}
        </span>
        <div class="cut small muted">{principal}</div>
      </div>
      <div class="cut">
        {bindings.length === 0 && <span class="muted">no instance yet</span>}
        {bindings.map(({ template, instance_id }, index) => (
          <span key={template}>
            {index > 0 && ', '}
            <a href={href('template', { name: template, instance: instance_id })}>{instance_id}</a>
          </span>
        ))}
        {is_streaming && <div class="small muted">listens</div>}
      </div>
      <Cell name="opened">{day(created_at)}</Cell>
      <Cell name="last used">{duration(Date.now() - Date.parse(last_used_at))} ago</Cell>
      <span class="actions end">
        <button type="button" class="small" onClick={onEnd}>
          End
        </button>
      </span>
    </div>
  );
}
