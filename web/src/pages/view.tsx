// The editor of a view: all tools at the left, those of the view at the right, and the items that a client gets from it.

import { useSignal } from '@preact/signals';
import { isAdmin, mayWrite } from '../account.ts';
import { ApiError, change, get, ifMatch, isOutdated, messageOf } from '../api.ts';
import { Approvals } from '../parts/approvals.tsx';
import { Field } from '../parts/field.tsx';
import { useLoaded } from '../parts/load.ts';
import { notify } from '../parts/notices.tsx';
import { Segments } from '../parts/segments.tsx';
import { Empty, Failure, Loading, Outdated } from '../parts/status.tsx';
import { ViewChosen } from '../parts/view-chosen.tsx';
import { ViewPreview } from '../parts/view-preview.tsx';
import { type TemplateTools, useTools, ViewTools } from '../parts/view-tools.tsx';
import { href, navigatorFromHere, route } from '../router.ts';
import { templates } from '../store.ts';
import { NEW_VIEW, type ViewDraft, withNames } from '../view-draft.ts';
import { draftOf, faultsOf, type ViewRecord } from '../views.ts';

export function ViewPage() {
  const id = route.value.params.get('id');
  if (!mayWrite.value) return <Empty title="Your account may not change views." />;
  return (
    <>
      <nav aria-label="Breadcrumb" class="crumbs">
        <a href={href('views')}>Views</a>
      </nav>
      {id === null ? <Editor key="" /> : <StoredView key={id} id={id} />}
    </>
  );
}

function StoredView({ id }: { readonly id: string }) {
  const { data, error, reload } = useLoaded(
    () => get<ViewRecord>(`gateway/views/${encodeURIComponent(id)}`),
    [id],
  );
  // A view that is read again may be gone by now.
  if (data !== undefined && error === undefined)
    return <Editor key={data.etag} record={data} onReload={reload} />;
  return (
    <>
      <h1>{id}</h1>
      {error === undefined ? <Loading what="the view" /> : <Failure text={error} onRetry={reload} />}
    </>
  );
}

interface EditorProps {
  /** Undefined for a new view. */
  readonly record?: ViewRecord;
  readonly onReload?: () => void;
}

const NO_FAULTS: ReadonlyMap<string, string> = new Map();

function Editor({ record, onReload }: EditorProps) {
  const view = useSignal<ViewDraft>(record === undefined ? NEW_VIEW : draftOf(record));
  const faults = useSignal(NO_FAULTS);
  const isBusy = useSignal(false);
  const isRefused = useSignal(false);
  const draft = view.value;
  const used = [...templates.value].filter(([, members]) => members.length > 0).map(([name]) => name);
  const names = [...new Set([...used, ...draft.from.map(({ template }) => template)])].sort();
  const known = useTools(names);
  const set = (next: ViewDraft): void => {
    view.value = next;
  };
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    isBusy.value = true;
    faults.value = NO_FAULTS;
    const leave = navigatorFromHere();
    try {
      if (record === undefined) await refuseTaken(draft.id);
      await change('PUT', `gateway/views/${draft.id}`, draft, record && ifMatch(record.etag));
      notify(`The view ${draft.id} is in force.`);
      leave(href('views'));
    } catch (thrown) {
      isRefused.value = isOutdated(thrown);
      if (codeOf(thrown) === 'DUPLICATE_VIEW') faults.value = new Map([['id', messageOf(thrown)]]);
      else if (thrown instanceof ApiError) faults.value = faultsOf(thrown, draft);
      else faults.value = new Map([['', messageOf(thrown)]]);
    } finally {
      isBusy.value = false;
    }
  };
  const wrong = faults.value;
  return (
    <>
      <h1>{record === undefined ? 'New view' : record.id}</h1>
      <form class="view-editor" onSubmit={(event) => void save(event)}>
        <Words view={draft} known={known} isNew={record === undefined} faults={wrong} onChange={set} />
        <div class="two-lists">
          <ViewTools view={draft} names={names} known={known} onChange={set} />
          <ViewChosen view={draft} known={known} faults={wrong} onChange={set} />
        </div>
        {isRefused.value ? (
          <Outdated what="view" onReload={onReload} />
        ) : (
          wrong.size > 0 && <Failure text={summaryOf(wrong)} />
        )}
        <div class="actions">
          <button type="submit" class="primary" disabled={isBusy.value || draft.from.length === 0}>
            {record === undefined ? 'Create the view' : 'Save'}
          </button>
          <a class="button" href={href('views')}>
            Cancel
          </a>
        </div>
      </form>
      {record?.approve === 'pinned' && <Approvals path={`gateway/views/${record.id}`} what="view" />}
      <ViewPreview view={draft} isStored={record !== undefined} />
    </>
  );
}

function codeOf(thrown: unknown): string {
  return thrown instanceof ApiError ? thrown.code : '';
}

/** `PUT` would replace it. */
async function refuseTaken(id: string): Promise<void> {
  const taken = await get<ViewRecord>(`gateway/views/${id}`).catch((thrown: unknown) => {
    if (codeOf(thrown) === 'VIEW_NOT_FOUND') return undefined;
    throw thrown;
  });
  if (taken !== undefined) throw new ApiError('A view with this name exists already.', 0, 'DUPLICATE_VIEW');
}

function summaryOf(faults: ReadonlyMap<string, string>): string {
  return faults.get('') ?? 'The view is not saved. What has to change is said above, where it is.';
}

interface WordsProps {
  readonly view: ViewDraft;
  readonly known: ReadonlyMap<string, TemplateTools>;
  readonly isNew: boolean;
  readonly faults: ReadonlyMap<string, string>;
  readonly onChange: (view: ViewDraft) => void;
}

const NAMES = [
  ['bare', 'Bare names'],
  ['prefixed', 'Prefixed names'],
] as const;

function Words({ view, known, isNew, faults, onChange }: WordsProps) {
  const set = (field: 'title' | 'description' | 'instructions', text: string): void => {
    const { [field]: _, ...others } = view;
    onChange(text === '' ? others : { ...others, [field]: text });
  };
  const { names = 'bare' } = view;
  return (
    <div class="panel padded form">
      <div class="columns">
        <NameField
          id={view.id}
          isNew={isNew}
          error={faults.get('id')}
          onInput={(id) => onChange({ ...view, id })}
        />
        <Field label="Title" error={faults.get('title')} hint="As clients show it.">
          <input
            autocomplete="off"
            maxLength={256}
            value={view.title ?? ''}
            onInput={(event) => set('title', event.currentTarget.value)}
          />
        </Field>
      </div>
      <Field label="Description" error={faults.get('description')}>
        <input
          autocomplete="off"
          maxLength={4_096}
          value={view.description ?? ''}
          onInput={(event) => set('description', event.currentTarget.value)}
        />
      </Field>
      <details>
        <summary>Instructions for the model</summary>
        <Field
          label="Instructions"
          error={faults.get('instructions')}
          hint="Empty: those of the templates, under headings."
        >
          <textarea
            value={view.instructions ?? ''}
            onInput={(event) => set('instructions', event.currentTarget.value)}
          />
        </Field>
      </details>
      <Segments
        label="Names of tools"
        options={NAMES}
        value={names}
        onChoose={(chosen) => onChange(withNames(view, chosen, known))}
      />
      <ApprovalChoice view={view} onChange={onChange} />
    </div>
  );
}

interface NameFieldProps {
  readonly id: string;
  readonly isNew: boolean;
  readonly error: string | undefined;
  readonly onInput: (id: string) => void;
}

function NameField({ id, isNew, error, onInput }: NameFieldProps) {
  return (
    <Field label="Name" isRequired error={error} hint={`Clients use it at /mcp/${id || '<name>'}.`}>
      <input
        required
        readOnly={!isNew}
        autocomplete="off"
        maxLength={64}
        pattern="[a-z][a-z0-9\-]*"
        title="Lower-case letters, digits and hyphens"
        value={id}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </Field>
  );
}

function ApprovalChoice({ view, onChange }: Pick<WordsProps, 'view' | 'onChange'>) {
  return (
    <label class="check">
      <input
        type="checkbox"
        disabled={!isAdmin.value}
        checked={view.approve === 'pinned'}
        onChange={(event) => {
          const { approve: _, ...others } = view;
          onChange(event.currentTarget.checked ? { ...others, approve: 'pinned' } : others);
        }}
      />
      Approve tools: what servers add or change later waits for an admin
    </label>
  );
}
