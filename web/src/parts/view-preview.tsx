// The preview of a view for a client, as it is edited or, for another caller, as it was saved: the tools, their tokens, and the
// problems.

import { useSignal } from '@preact/signals';
import { isAdmin } from '../account.ts';
import { change, get } from '../api.ts';
import { count, plural, shortened } from '../format.ts';
import type { ViewDraft } from '../view-draft.ts';
import type { ViewPreview as Preview } from '../views.ts';
import type { ApiKey, User } from './account-dialogs.tsx';
import { Icon } from './icon.tsx';
import { useLoaded } from './load.ts';
import { Search } from './search.tsx';
import { Failure } from './status.tsx';

const PAUSE_MS = 300;

interface ViewPreviewProps {
  readonly view: ViewDraft;
  /** True for a stored view, which can be shown as others see it. */
  readonly isStored: boolean;
}

export function ViewPreview({ view, isStored }: ViewPreviewProps) {
  const as = useSignal('');
  const { data, error } = usePreview(view, as.value);
  return (
    <section aria-labelledby="preview">
      <div class="title">
        <h2 id="preview">Preview</h2>
        {isStored && isAdmin.value && (
          <CallerSelect
            value={as.value}
            onChange={(id) => {
              as.value = id;
            }}
          />
        )}
      </div>
      <p role="status">
        {data === undefined ? (
          <span class="muted">
            {view.from.length === 0 ? 'It appears when a tool is chosen.' : 'Loading…'}
          </span>
        ) : (
          <>
            <span class="strong">{plural(data.count, 'tool')}</span>, about{' '}
            <span class="strong">{plural(data.tokens, 'token')}</span> in the list that a client reads
            {as.value !== '' && ', as the view was saved'}.
            {data.asks.length > 0 && ` The user confirms calls of ${plural(data.asks.length, 'tool')}.`}
          </>
        )}
      </p>
      {error !== undefined && <Failure text={error} />}
      {data?.problems.map(({ code, template, tool, message }) => (
        <p key={`${code} ${template} ${tool} ${message}`} class="callout warn">
          <Icon name="warn" />
          <span>{message}</span>
        </p>
      ))}
      {data !== undefined && data.count > 0 && (
        <ul class="panel list preview" aria-labelledby="preview">
          {data.tools.slice(0, SHOWN).map((tool) => (
            <li key={tool.name}>
              <details>
                <summary>
                  {tool.name} {data.asks.includes(tool.name) && <span class="small strong">asks first </span>}
                  <span class="small muted">{shortened(tool.description ?? '')}</span>
                </summary>
                {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by the keyboard */}
                <pre class="output" tabIndex={0}>
                  {JSON.stringify(tool, null, 2)}
                </pre>
              </details>
            </li>
          ))}
          {data.count > SHOWN && <li class="small muted">And {count(data.count - SHOWN)} more.</li>}
        </ul>
      )}
    </section>
  );
}

/** Rows of the preview: the list above has all. */
const SHOWN = 50;

/** Read again after a pause in the changes; the last one counts. */
function usePreview(view: ViewDraft, as: string) {
  const { id, ...definition } = view;
  const body = JSON.stringify(definition);
  const { data, error } = useLoaded(
    async (signal) => {
      if (view.from.length === 0) return undefined;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      if (signal.aborted) return undefined; // nobody waits for it any more
      return as === ''
        ? change<Preview>('POST', 'gateway/views/preview', definition)
        : get<Preview>(`gateway/views/${id}/preview?as=${encodeURIComponent(as)}`);
    },
    [body, as],
  );
  return { data: error === undefined ? data : undefined, error };
}

interface CallerSelectProps {
  readonly value: string;
  readonly onChange: (id: string) => void;
}

/** Callers in the document: thousands would make the page slow. */
const CALLERS = 100;

function CallerSelect({ value, onChange }: CallerSelectProps) {
  const users = useLoaded(() => get<readonly User[]>('auth/users'), []).data ?? [];
  const keys = useLoaded(() => get<readonly ApiKey[]>('auth/api-keys'), []).data ?? [];
  const filter = useSignal('');
  const all = [
    ...users.map(({ id, username }) => ({ id, text: `User ${username}` })),
    ...keys.map(({ id, name }) => ({ id, text: `Key ${name}` })),
  ];
  const found = all.filter(({ id, text }) => id === value || text.toLowerCase().includes(filter.value));
  const shown = found.filter(({ id }, at) => id === value || at < CALLERS);
  const more = found.length - shown.length;
  return (
    <div class="actions">
      <Search label="Filter users and keys" count={all.length} filter={filter} />
      <select
        class="short"
        aria-label="Preview as"
        value={value}
        onChange={(event) => onChange(event.currentTarget.value)}
      >
        <option value="">As you see it</option>
        {shown.map(({ id, text }) => (
          <option key={id} value={id}>
            {text}
          </option>
        ))}
        {more > 0 && <option disabled>{count(more)} more: filter them</option>}
      </select>
    </div>
  );
}
