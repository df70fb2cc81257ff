// The tools of a pinned template or view: those that wait for approval, with their changes, and the approved ones.

import { useSignal } from '@preact/signals';
import { isAdmin } from '../account.ts';
import { change, get } from '../api.ts';
import { diffOf } from '../diff.ts';
import { plural } from '../format.ts';
import { toolChanges } from '../store.ts';
import { useLoaded } from './load.ts';
import { attempt } from './notices.tsx';
import { Badge } from './state.tsx';
import { Reading } from './status.tsx';

type Definition = Readonly<Record<string, unknown>>;

interface ListedTool {
  readonly name: string;
  /** The template of a tool of a view. */
  readonly template?: string;
  readonly tool?: string;
  readonly state: 'approved' | 'new' | 'changed' | 'withheld';
  readonly reason?: string;
  readonly approved?: Definition;
  /** The definitions that wait, the newest last. */
  readonly waiting?: readonly { readonly digest: string; readonly definition: Definition }[];
}

/** The approvals. `path`: that of the template or the view. `what`: `template` or `view`. */
export function Approvals({ path, what }: { readonly path: string; readonly what: string }) {
  const { data, error, reload } = useLoaded(
    () => get<{ readonly tools: readonly ListedTool[] }>(`${path}/tools`),
    [path, toolChanges.value],
  );
  const isBusy = useSignal(false);
  const tools = data?.tools ?? [];
  const waiting = tools.filter(({ waiting }) => waiting);
  const withheld = tools.filter(({ state }) => state === 'withheld');
  const approved = tools.filter(({ state }) => state === 'approved');
  /** Approves the definitions that are shown, and none that has come since. */
  const approve = async (shown: readonly ListedTool[], done: string): Promise<void> => {
    isBusy.value = true;
    const digests = shown.flatMap(({ waiting }) => waiting?.map(({ digest }) => digest) ?? []);
    await attempt(() => change('POST', `${path}/tools/approve`, { tools: shown.map(idOf), digests }), done);
    isBusy.value = false;
    reload();
  };
  return (
    <section aria-labelledby="approvals">
      <div class="title">
        <h2 id="approvals">Approval of tools</h2>
        {isAdmin.value && waiting.length > 1 && (
          <button
            type="button"
            disabled={isBusy.value}
            onClick={() => void approve(waiting, `${plural(waiting.length, 'tool')} are approved.`)}
          >
            Approve all {waiting.length}
          </button>
        )}
      </div>
      <Reading what="tools" isRead={data !== undefined} error={error} reload={reload} />
      {data !== undefined && <Summary count={waiting.length} what={what} />}
      {waiting.length + withheld.length > 0 && (
        <ul class="panel list approvals" aria-labelledby="approvals">
          {[...waiting, ...withheld].map((tool) => (
            <li key={keyOf(tool)}>
              <Waiting
                tool={tool}
                isBusy={isBusy.value}
                onApprove={() => void approve([tool], `${tool.name} is approved.`)}
              />
            </li>
          ))}
        </ul>
      )}
      {approved.length > 0 && (
        <details>
          <summary>{plural(approved.length, 'approved tool')}</summary>
          <p class="tool-names">{approved.map(({ name }) => name).join(', ')}</p>
        </details>
      )}
    </section>
  );
}

/** The number of tools that wait for approval, of which clients get nothing yet. */
function Summary({ count, what }: { readonly count: number; readonly what: string }) {
  const [wait, them] = count === 1 ? ['waits', 'it'] : ['wait', 'them'];
  return (
    <p role="status">
      {count === 0
        ? `No tool of this ${what} waits for approval.`
        : `${plural(count, 'tool')} of this ${what} ${wait} for approval: clients do not get ${them}.`}
      {!isAdmin.value && count > 0 && ' An admin approves them.'}
    </p>
  );
}

/** The name under which it is approved: two tools of a view may want one. */
function idOf({ name, template, tool }: ListedTool): string {
  return template === undefined ? name : `${template}/${tool}`;
}

function keyOf(tool: ListedTool): string {
  return `${idOf(tool)} ${tool.state}`;
}

const LOOKS = {
  new: { tone: 'idle', icon: 'plus', word: 'New' },
  changed: { tone: 'warn', icon: 'warn', word: 'Changed' },
  withheld: { tone: 'bad', icon: 'bad', word: 'Withheld' },
  approved: { tone: 'ok', icon: 'healthy', word: 'Approved' },
} as const;

interface WaitingProps {
  readonly tool: ListedTool;
  readonly isBusy: boolean;
  readonly onApprove: () => void;
}

function Waiting({ tool, isBusy, onApprove }: WaitingProps) {
  const { name, template, state, reason, approved, waiting } = tool;
  return (
    <>
      <div class="title">
        <span>
          <span class="strong">{name}</span>{' '}
          <span class="small muted">
            {template !== undefined && `of ${template}; `}
            {reason}
          </span>
        </span>
        <span class="actions">
          <Badge {...LOOKS[state]} />
          {isAdmin.value && waiting && (
            <button
              type="button"
              class="small"
              aria-label={`Approve ${name}`}
              disabled={isBusy}
              onClick={onApprove}
            >
              Approve
            </button>
          )}
        </span>
      </div>
      {waiting?.map(({ digest, definition }) => (
        <details key={digest} open={approved !== undefined}>
          <summary>{approved === undefined ? 'Its definition' : 'What changed'}</summary>
          <Changes approved={approved} listed={definition} />
        </details>
      ))}
    </>
  );
}

const FIELDS: readonly (readonly [field: string, title: string])[] = [
  ['name', 'Name'],
  ['title', 'Title'],
  ['description', 'Description'],
  ['inputSchema', 'Arguments'],
  ['outputSchema', 'Result'],
  ['annotations', 'Annotations'],
  ['ui', 'Interface'],
];

/** Each field that is not as it was approved. */
function Changes({
  approved = {},
  listed,
}: {
  readonly approved?: Definition | undefined;
  readonly listed: Definition;
}) {
  const changed = FIELDS.map(([field, title]) => ({ title, lines: diffOf(approved[field], listed[field]) }));
  return (
    <>
      {changed
        .filter(({ lines }) => lines.some(({ kind }) => kind !== 'same'))
        .map(({ title, lines }) => (
          <div key={title}>
            <h3 class="small">{title}</h3>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by the keyboard */}
            <pre class="output diff" tabIndex={0}>
              {lines.map(({ kind, text }, index) => {
                const line = `${text}\n`;
                if (kind === 'same') return `  ${line}`;
                return kind === 'gone' ? <del key={index}>- {line}</del> : <ins key={index}>+ {line}</ins>;
              })}
            </pre>
          </div>
        ))}
    </>
  );
}
