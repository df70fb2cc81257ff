// The tools that a view may take: those of each template, with a check box and a search.

import { useSignal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { get, messageOf } from '../api.ts';
import { plural } from '../format.ts';
import { balancers, templates } from '../store.ts';
import { chooser, sourceOf, type Tool, type ViewDraft, withAllTools, withTool } from '../view-draft.ts';
import { useSignedIn } from './load.ts';
import { Search } from './search.tsx';
import { Empty } from './status.tsx';
import { VirtualList } from './virtual-list.tsx';

/** The tools of a template: undefined until they are read, and why they could not be read. */
export interface TemplateTools {
  readonly tools?: readonly Tool[];
  readonly error?: string;
}

const AWAY: TemplateTools = { error: 'No instance is available.' };

/**
 * The tools of each template, by its name. A list is read when an instance becomes available: nothing that was filled in has to be
 * given up for it. A failed one is also read again after a sign-in.
 */
export function useTools(names: readonly string[]): ReadonlyMap<string, TemplateTools> {
  const [known, setKnown] = useState<ReadonlyMap<string, TemplateTools>>(new Map());
  const [round, setRound] = useState(0);
  const asked = useRef(new Set<string>());
  const available = new Set(
    names.filter((name) => templates.value.get(name)?.some(({ healthy }) => healthy)),
  );
  const failed = [...known].filter(([, { error }]) => error !== undefined);
  useSignedIn(failed[0]?.[1].error, () => {
    for (const [name] of failed) asked.current.delete(name);
    setRound(round + 1);
  });
  useEffect(() => {
    for (const name of asked.current) if (!available.has(name)) asked.current.delete(name);
    for (const name of available) {
      if (asked.current.has(name)) continue;
      asked.current.add(name);
      get<{ readonly tools: readonly Tool[] }>(`mcp/${name}/tools/list`)
        .then(({ tools }): TemplateTools => ({ tools }))
        .catch((thrown: unknown): TemplateTools => ({ error: messageOf(thrown) }))
        .then((found) => setKnown((before) => new Map(before).set(name, found)));
    }
  }, [[...available].join(), round]);
  if (balancers.value === undefined) return known; // the state of the instances is not read yet
  const away = names.filter((name) => !known.has(name) && !available.has(name));
  return new Map([...known, ...away.map((name) => [name, AWAY] as const)]);
}

interface ViewToolsProps {
  readonly view: ViewDraft;
  /** The names of the templates. */
  readonly names: readonly string[];
  readonly known: ReadonlyMap<string, TemplateTools>;
  readonly onChange: (view: ViewDraft) => void;
}

type Row =
  | { readonly template: string; readonly tool: Tool }
  | { readonly template: string; readonly found: TemplateTools | undefined };

export function ViewTools({ view, names, known, onChange }: ViewToolsProps) {
  const filter = useSignal('');
  const wanted = filter.value;
  const rows = names.flatMap((template): Row[] => {
    const found = known.get(template);
    const shown = (found?.tools ?? []).filter(({ name, description = '' }) =>
      `${template} ${name} ${description}`.toLowerCase().includes(wanted),
    );
    if (shown.length === 0 && wanted !== '') return [];
    return [{ template, found }, ...shown.map((tool) => ({ template, tool }))];
  });
  const all = names.reduce((sum, template) => sum + (known.get(template)?.tools?.length ?? 0), 0);
  const matching = rows.filter((row) => 'tool' in row);
  const chooseShown = (): void => {
    onChange(
      matching.reduce((draft, { template, tool }) => withTool(draft, template, tool.name, true), view),
    );
  };
  return (
    <section aria-labelledby="all-tools">
      <div class="title">
        <h2 id="all-tools">All tools</h2>
        {wanted !== '' && matching.length > 0 && (
          <button type="button" class="small" onClick={chooseShown}>
            Choose {plural(matching.length, 'tool')} shown
          </button>
        )}
      </div>
      <div class="panel items tall">
        <Search label="Filter tools" placeholder={`Filter ${plural(all, 'tool')}`} filter={filter} />
        {rows.length === 0 && (
          <Empty title={names.length === 0 ? 'No template has an instance.' : 'Nothing matches.'} />
        )}
        <VirtualList items={rows} keyOf={keyOf} rowHeight={48} label="All tools">
          {(row) =>
            'tool' in row ? (
              <ToolRow view={view} {...row} onChange={onChange} />
            ) : (
              <TemplateRow view={view} {...row} onChange={onChange} />
            )
          }
        </VirtualList>
      </div>
    </section>
  );
}

function keyOf(row: Row): string {
  return 'tool' in row ? `${row.template}/${row.tool.name}` : row.template;
}

interface RowProps extends Pick<ViewToolsProps, 'view' | 'onChange'> {
  readonly template: string;
}

function TemplateRow({
  view,
  template,
  found,
  onChange,
}: RowProps & { readonly found: TemplateTools | undefined }) {
  const box = useRef<HTMLInputElement>(null);
  const source = sourceOf(view, template);
  const isChosen = chooser(source);
  const tools = found?.tools ?? [];
  const chosen = tools.filter(({ name }) => isChosen(name)).length;
  const isAll = source !== undefined && source.tools === undefined;
  useEffect(() => {
    if (box.current !== null) box.current.indeterminate = !isAll && chosen > 0;
  });
  return (
    <label class="check choice of-template">
      <input
        ref={box}
        type="checkbox"
        aria-label={`All tools of ${template}`}
        checked={isAll}
        onChange={(event) => onChange(withAllTools(view, template, event.currentTarget.checked))}
      />
      <span class="strong cut">{template}</span>
      <span class="small muted cut">
        {found === undefined ? 'Loading…' : (found.error ?? `${chosen} of ${plural(tools.length, 'tool')}`)}
      </span>
    </label>
  );
}

function ToolRow({ view, template, tool, onChange }: RowProps & { readonly tool: Tool }) {
  const { name, description = '' } = tool;
  return (
    <label class="check choice" title={description}>
      <input
        type="checkbox"
        aria-label={`${name} of ${template}`}
        checked={chooser(sourceOf(view, template))(name)}
        onChange={(event) => onChange(withTool(view, template, name, event.currentTarget.checked))}
      />
      <span class="choice-text">
        <span class="cut">{name}</span>
        <span class="cut small muted">{description}</span>
      </span>
    </label>
  );
}
