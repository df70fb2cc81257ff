// Tries the tools, resources and prompts of a template, each in its own form.

import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { mayCall } from '../account.ts';
import { get } from '../api.ts';
import { useLoaded } from '../parts/load.ts';
import { RunPanel } from '../parts/run-panel.tsx';
import { Search } from '../parts/search.tsx';
import { Segments } from '../parts/segments.tsx';
import { Empty, Failure, Loading } from '../parts/status.tsx';
import { TemplateSelect } from '../parts/template-select.tsx';
import { VirtualList } from '../parts/virtual-list.tsx';
import { abandonRuns, type Item, type ItemKind, listItems } from '../playground.ts';
import { route, setParams } from '../router.ts';
import { balancers, templates } from '../store.ts';

const TITLES: Readonly<Record<ItemKind, string>> = {
  tools: 'Tools',
  resources: 'Resources',
  prompts: 'Prompts',
};
const KINDS: readonly ItemKind[] = ['tools', 'resources', 'prompts'];

export function PlaygroundPage() {
  const { params } = route.value;
  const used = [...templates.value].filter(([, members]) => members.length > 0).map(([name]) => name);
  const views = useLoaded(() => get<{ readonly views: readonly { id: string }[] }>('gateway/views'), []).data;
  const names = [...used, ...(views?.views.map(({ id }) => id) ?? [])];
  const template = params.get('template') ?? names[0];
  const kind = kindOf(params.get('kind'));
  useEffect(() => {
    addEventListener('pagehide', abandonRuns);
    return () => {
      removeEventListener('pagehide', abandonRuns);
      abandonRuns();
    };
  }, []);
  return (
    <>
      <div class="title">
        <h1>Playground</h1>
        <TemplateSelect
          names={names}
          value={template}
          onChange={(name) => setParams({ template: name, item: undefined })}
        />
      </div>
      {!mayCall.value && <Empty title="Your account may not call tools." />}
      {mayCall.value && template === undefined && balancers.value === undefined && (
        <Loading what="templates" />
      )}
      {mayCall.value && balancers.value !== undefined && template === undefined && (
        <Empty title="Nothing to call: no template has an instance." />
      )}
      {mayCall.value && template !== undefined && (
        <>
          <Segments
            label="Kind"
            options={KINDS.map((each) => [each, TITLES[each]])}
            value={kind}
            onChoose={(chosen) => setParams({ kind: chosen, item: undefined })}
          />
          <Items key={`${template} ${kind}`} template={template} kind={kind} />
        </>
      )}
    </>
  );
}

function kindOf(text: string | null): ItemKind {
  return text === 'resources' || text === 'prompts' ? text : 'tools';
}

interface ItemsProps {
  readonly template: string;
  readonly kind: ItemKind;
}

function Items({ template, kind }: ItemsProps) {
  const { data: items, error, reload } = useLoaded(() => listItems(template, kind), []);
  const filter = useSignal('');
  const chosen = route.value.params.get('item');
  const first = items?.[0]?.id;
  useEffect(() => {
    if (chosen === null && first !== undefined) setParams({ template, item: first });
  }, [chosen, first, template]);
  if (error !== undefined) return <Failure text={error} onRetry={reload} />;
  if (items === undefined) return <Loading what={kind} />;
  if (items.length === 0) return <Empty title={`${template} offers no ${kind}.`} />;
  const item = items.find(({ id }) => id === chosen);
  const shown = items.filter(({ id, title }) => `${id} ${title}`.toLowerCase().includes(filter.value));
  return (
    <div class="playground">
      <div class="panel items">
        <Search
          label={`Filter ${kind}`}
          placeholder={`Filter ${items.length} ${kind}`}
          count={items.length}
          filter={filter}
        />
        {shown.length === 0 && <Empty title="Nothing matches." />}
        <VirtualList items={shown} keyOf={({ id }) => id} rowHeight={58} label={TITLES[kind]}>
          {(each) => <ItemRow item={each} isChosen={each.id === chosen} />}
        </VirtualList>
      </div>
      {item !== undefined && <RunPanel key={item.id} template={template} item={item} />}
    </div>
  );
}

function ItemRow({ item, isChosen }: { readonly item: Item; readonly isChosen: boolean }) {
  return (
    <button
      type="button"
      class="item"
      aria-current={isChosen ? 'true' : undefined}
      onClick={() => setParams({ item: item.id })}
    >
      <span class="cut strong">{item.title}</span>
      <span class="cut small muted">{item.description === '' ? item.id : item.description}</span>
    </button>
  );
}
