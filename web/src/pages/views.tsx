// The views, which are servers made of chosen tools: the problems of each, its addresses, and its deletion.

import { useSignal } from '@preact/signals';
import { mayCall, mayWrite } from '../account.ts';
import { change, get, ifMatch } from '../api.ts';
import { day, plural } from '../format.ts';
import { Cell } from '../parts/cell.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { Icon } from '../parts/icon.tsx';
import { useLoaded } from '../parts/load.ts';
import { Badge } from '../parts/state.tsx';
import { Empty, Reading } from '../parts/status.tsx';
import { href } from '../router.ts';
import type { ViewProblem, ViewRecord } from '../views.ts';

export function ViewsPage() {
  const { data, error, reload } = useLoaded(
    () => get<{ readonly views: readonly ViewRecord[] }>('gateway/views'),
    [],
  );
  const deleting = useSignal<ViewRecord>();
  const views = data?.views;
  const gone = deleting.value;
  return (
    <>
      <div class="title">
        <h1>Views</h1>
        {mayWrite.value && (
          <a class="button" href={href('view')}>
            <Icon name="plus" />
            New view
          </a>
        )}
      </div>
      <p class="muted">
        A view is a server of its own at <code>/mcp/&lt;view&gt;</code>: tools that you choose from several
        templates, under the names that you give them.
      </p>
      <Reading what="views" isRead={views !== undefined} error={error} reload={reload} />
      {views?.length === 0 && <NoView />}
      {views !== undefined && views.length > 0 && (
        <ul class="panel list accounts" aria-label="Views">
          {views.map((view) => (
            <li key={view.id}>
              <ViewRow
                view={view}
                onDelete={() => {
                  deleting.value = view;
                }}
              />
            </li>
          ))}
        </ul>
      )}
      {gone !== undefined && (
        <Confirm
          title={`Delete the view ${gone.id}?`}
          text="Its clients lose their tools at once. The templates stay as they are."
          action="Delete"
          run={() => change('DELETE', `gateway/views/${gone.id}`, undefined, ifMatch(gone.etag))}
          done={`${gone.id} is deleted.`}
          onDone={reload}
          onClose={() => {
            deleting.value = undefined;
          }}
        />
      )}
    </>
  );
}

function NoView() {
  return (
    <Empty title="No view yet.">
      {mayWrite.value ? (
        <a class="button primary" href={href('view')}>
          Make the first one
        </a>
      ) : (
        <p>An account that may change the gateway makes them.</p>
      )}
    </Empty>
  );
}

function ViewRow({ view, onDelete }: { readonly view: ViewRecord; readonly onDelete: () => void }) {
  const { id, title, from, problems, updated_at } = view;
  return (
    <div class="row">
      <div class="cell-name">
        {mayWrite.value ? (
          <a class="strong" href={href('view', { id })}>
            {id}
          </a>
        ) : (
          <span class="strong">{id}</span>
        )}
        {title !== undefined && <div class="cut small muted">{title}</div>}
      </div>
      {problems.length === 0 ? (
        <Badge tone="ok" icon="healthy" word="No problem" />
      ) : (
        <details>
          <summary>{plural(problems.length, 'problem')}</summary>
          <Problems problems={problems} />
        </details>
      )}
      <Cell name="of">{from.map(({ template }) => template).join(', ')}</Cell>
      <Cell name="changed">{day(updated_at)}</Cell>
      <span class="actions end">
        {mayCall.value && (
          <a class="button small" href={href('playground', { template: id })} aria-label={`Try ${id}`}>
            Try
          </a>
        )}
        {mayWrite.value && (
          <button type="button" class="small danger" aria-label={`Delete ${id}`} onClick={onDelete}>
            Delete
          </button>
        )}
      </span>
    </div>
  );
}

function Problems({ problems }: { readonly problems: readonly ViewProblem[] }) {
  return (
    <ul class="small">
      {problems.map(({ code, template, tool, message }) => (
        <li key={`${code} ${template} ${tool}`}>{message}</li>
      ))}
    </ul>
  );
}
