// The tools that a view has: each with its name in the view, a dialog for its name and description, and the refused values.

import { useSignal } from '@preact/signals';
import { isAdmin } from '../account.ts';
import { plural } from '../format.ts';
import {
  chooser,
  descriptionIn,
  hasHints,
  isConfirmed,
  listedName,
  nameIn,
  type Tool,
  type ViewDraft,
  type ViewSource,
  withSource,
  withTool,
  withWords,
} from '../view-draft.ts';
import { placeOf } from '../views.ts';
import { Dialog } from './dialog.tsx';
import { Field } from './field.tsx';
import { Empty } from './status.tsx';
import type { TemplateTools } from './view-tools.tsx';
import { VirtualList } from './virtual-list.tsx';

interface ViewChosenProps {
  readonly view: ViewDraft;
  readonly known: ReadonlyMap<string, TemplateTools>;
  /** The faults by `placeOf`. */
  readonly faults: ReadonlyMap<string, string>;
  readonly onChange: (view: ViewDraft) => void;
}

interface ToolEntry {
  readonly source: ViewSource;
  readonly tool: Tool;
}

type Row = ToolEntry | { readonly source: ViewSource; readonly left: number };

export function ViewChosen({ view, known, faults, onChange }: ViewChosenProps) {
  const edited = useSignal<ToolEntry>();
  const rows = view.from.flatMap((source): Row[] => {
    const isChosen = chooser(source);
    const chosen = known.get(source.template)?.tools?.filter(({ name }) => isChosen(name)) ?? [];
    const tools = chosen.filter((tool) => hasHints(source, tool));
    const left = chosen.length - tools.length;
    return [{ source, left }, ...tools.map((tool) => ({ source, tool }))];
  });
  const count = rows.length - view.from.length;
  const entry = edited.value;
  return (
    <section aria-labelledby="chosen-tools">
      <div class="title">
        <h2 id="chosen-tools">In the view: {plural(count, 'tool')}</h2>
      </div>
      <div class="panel items tall">
        {rows.length === 0 && (
          <Empty title="Nothing chosen yet.">
            <p>Check the tools that the view is to have.</p>
          </Empty>
        )}
        <VirtualList items={rows} keyOf={keyOf} rowHeight={64} label="Chosen tools">
          {(row) =>
            'tool' in row ? (
              <ChosenRow
                entry={row}
                view={view}
                fault={faults.get(placeOf(row.source.template, row.tool.name))}
                onEdit={() => {
                  edited.value = row;
                }}
                onChange={onChange}
              />
            ) : (
              <SourceRow
                {...row}
                fault={faults.get(placeOf(row.source.template))}
                onChange={(source) => onChange(withSource(view, source))}
              />
            )
          }
        </VirtualList>
      </div>
      {entry !== undefined && (
        <WordsDialog
          {...entry}
          view={view}
          onSave={(words) => onChange(withWords(view, entry.source.template, entry.tool.name, words, known))}
          onClose={() => {
            edited.value = undefined;
          }}
        />
      )}
    </section>
  );
}

function keyOf(row: Row): string {
  return placeOf(row.source.template, 'tool' in row ? row.tool.name : '');
}

interface ChosenRowProps extends Pick<ViewChosenProps, 'view' | 'onChange'> {
  readonly entry: ToolEntry;
  readonly fault: string | undefined;
  readonly onEdit: () => void;
}

function ChosenRow({ entry: { source, tool }, view, fault, onEdit, onChange }: ChosenRowProps) {
  const { template } = source;
  const isOwn = nameIn(source, tool.name) === tool.name;
  return (
    <div class="chosen">
      <span class="choice-text">
        <span class="cut strong">{listedName(view, source, tool.name)}</span>
        {fault === undefined ? (
          <span class="cut small muted">
            {isOwn ? template : `${tool.name} of ${template}`}
            {descriptionIn(source, tool.name) !== undefined && ', with a description of its own'}
            {isConfirmed(view, source, tool.name) && ', asks first'}
          </span>
        ) : (
          <span class="small tone-bad">{fault}</span>
        )}
      </span>
      <span class="actions">
        <button
          type="button"
          class="small"
          aria-label={`Rename or describe ${tool.name} of ${template}`}
          onClick={onEdit}
        >
          Rename
        </button>
        <button
          type="button"
          class="small"
          aria-label={`Remove ${tool.name} of ${template}`}
          onClick={() => onChange(withTool(view, template, tool.name, false))}
        >
          Remove
        </button>
      </span>
    </div>
  );
}

interface SourceRowProps {
  readonly source: ViewSource;
  /** Tools that `only` leaves out. */
  readonly left: number;
  readonly fault: string | undefined;
  readonly onChange: (source: ViewSource) => void;
}

const OTHERS = { resources: 'Resources', prompts: 'Prompts' } as const;

/** Fields that the editor has no control for. */
const KEPT = ['only', 'annotate', 'defaults'] as const;

function SourceRow({ source, left, fault, onChange }: SourceRowProps) {
  const { template, tools } = source;
  const kept = KEPT.filter((field) => source[field] !== undefined);
  const words = [
    tools === undefined ? 'all tools, later ones too' : undefined,
    kept.length > 0 ? `keeps ${kept.join(', ')}` : undefined,
    left > 0 ? `only leaves ${plural(left, 'tool')} out` : undefined,
  ].filter(Boolean);
  return (
    <div class="chosen of-template">
      <span class="choice-text">
        <span class="cut strong">{template}</span>
        {fault === undefined ? (
          <span class="cut small muted">{words.join('; ')}</span>
        ) : (
          <span class="small tone-bad">{fault}</span>
        )}
      </span>
      <span class="actions">
        {(['resources', 'prompts'] as const).map((field) => {
          const value = source[field] ?? 'all';
          return (
            <select
              key={field}
              aria-label={`${OTHERS[field]} of ${template}`}
              value={typeof value === 'string' ? value : 'some'}
              onChange={(event) => {
                const next = event.currentTarget.value;
                if (next === 'all' || next === 'none') onChange({ ...source, [field]: next });
              }}
            >
              <option value="none">No {field}</option>
              <option value="all">All {field}</option>
              {typeof value !== 'string' && <option value="some">Some {field}</option>}
            </select>
          );
        })}
      </span>
    </div>
  );
}

interface WordsDialogProps extends ToolEntry {
  readonly view: ViewDraft;
  readonly onSave: (words: Parameters<typeof withWords>[3]) => void;
  readonly onClose: () => void;
}

function WordsDialog({ view, source, tool, onSave, onClose }: WordsDialogProps) {
  const { name, description = '' } = tool;
  const save = (event: SubmitEvent): void => {
    event.preventDefault();
    const data = new FormData(event.currentTarget as HTMLFormElement);
    const text = (field: string) => String(data.get(field)).trim();
    const confirm = isAdmin.value ? { isConfirmed: data.has('confirm') } : {};
    onSave({ name: text('name'), description: text('description'), ...confirm });
    onClose();
  };
  return (
    <Dialog title={`${name} of ${source.template}`} onClose={onClose}>
      <form onSubmit={save}>
        <Field label="Name in the view" hint={`Letters, digits, "_" and "-". Empty: ${name}.`}>
          <input
            name="name"
            autocomplete="off"
            maxLength={64}
            pattern="[A-Za-z0-9_\-]+"
            placeholder={name}
            defaultValue={nameIn(source, name) === name ? '' : nameIn(source, name)}
          />
        </Field>
        <Field label="Description" hint="What the model reads. Empty: that of the server.">
          <textarea
            name="description"
            maxLength={8_192}
            placeholder={description}
            defaultValue={descriptionIn(source, name) ?? ''}
          />
        </Field>
        <label class="check">
          <input
            type="checkbox"
            name="confirm"
            disabled={!isAdmin.value}
            defaultChecked={isConfirmed(view, source, name)}
          />
          The user confirms each call{!isAdmin.value && ' (only an admin changes this)'}
        </label>
        <div class="actions end">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary">
            Apply
          </button>
        </div>
      </form>
    </Dialog>
  );
}
