// The fields of users and keys that limit their rights: to templates, views, and tools.

import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { get } from '../api.ts';
import { plural } from '../format.ts';
import { templates as allTemplates } from '../store.ts';
import { Field } from './field.tsx';
import { useLoaded } from './load.ts';

/** The rights of a user or a key; null = all. When there is no list of views, a list of templates excludes all views. */
export interface Rights {
  readonly templates: readonly string[] | null;
  readonly views: readonly string[] | null;
  /** Rules `<template>/<glob>`, perhaps after `!`. */
  readonly tools: readonly string[] | null;
}

export function RightsFields({ rights }: { readonly rights: Rights | undefined }) {
  const stored = useLoaded(
    () => get<{ readonly views: readonly { id: string }[] }>('gateway/views'),
    [],
  ).data;
  const { templates = null, views = null, tools = null } = rights ?? {};
  return (
    <>
      <Limit name="templates" legend="Templates" label="Only some templates" isLimited={templates !== null}>
        <Names name="templates" known={allTemplates.value.keys()} chosen={templates} />
      </Limit>
      <Limit
        name="views"
        legend="Views"
        label="Only some views"
        hint="Otherwise all, or none where templates are limited. A view needs no right to its templates."
        isLimited={views !== null}
      >
        <Names name="views" known={stored?.views.map(({ id }) => id) ?? []} chosen={views} />
      </Limit>
      <Limit name="tools" legend="Tools" label="Only some tools" isLimited={tools !== null}>
        <Field
          label="Rules"
          hint="One per line, as `template/tool`: `*` is any text, `!` before a rule excludes, the last match decides. Views are limited, too."
        >
          <textarea
            name="tools"
            class="mono"
            spellcheck={false}
            placeholder={'github/issues_*\n!github/issues_delete'}
            defaultValue={tools?.join('\n')}
          />
        </Field>
      </Limit>
    </>
  );
}

interface LimitProps {
  readonly name: keyof Rights;
  readonly legend: string;
  readonly label: string;
  readonly hint?: string;
  readonly isLimited: boolean;
  readonly children: ComponentChildren;
}

function Limit({ name, legend, label, hint, isLimited, children }: LimitProps) {
  const isOn = useSignal(isLimited);
  return (
    <fieldset class="form">
      <legend class="label">{legend}</legend>
      <label class="check">
        <input
          type="checkbox"
          name={`limits-${name}`}
          checked={isOn.value}
          onChange={(event) => {
            isOn.value = event.currentTarget.checked;
          }}
        />
        {label}
      </label>
      {hint !== undefined && <p class="hint">{hint}</p>}
      {isOn.value && children}
    </fieldset>
  );
}

interface NamesProps {
  readonly name: keyof Rights;
  readonly known: Iterable<string>;
  readonly chosen: readonly string[] | null;
}

/** Names that are allowed and no longer exist stay in the list. */
function Names({ name, known, chosen }: NamesProps) {
  const names = [...new Set([...known, ...(chosen ?? [])])].sort();
  return (
    <div class="choices-of-templates">
      {names.length === 0 && <p class="muted">There is none.</p>}
      {names.map((each) => (
        <label key={each} class="check">
          <input type="checkbox" name={name} value={each} defaultChecked={chosen?.includes(each)} />
          {each}
        </label>
      ))}
    </div>
  );
}

/** The entered rights. Throws for an account that could use nothing. */
export function rightsOf(data: FormData): Rights {
  const namesOf = (name: keyof Rights) => (data.has(`limits-${name}`) ? data.getAll(name).map(String) : null);
  const [templates, views] = [namesOf('templates'), namesOf('views')];
  const tools = namesOf('tools')?.flatMap((text) =>
    text
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean),
  );
  if (templates?.length === 0 && !(views !== null && views.length > 0))
    throw new Error('Select at least one template or view, or all templates.');
  if (tools?.length === 0) throw new Error('Write at least one rule for tools, or allow all.');
  return { templates, views, tools: tools ?? null };
}

/** The rights in words, for a list: `all templates`; `files; view support; 2 rules for tools`. */
export function rightsText({ templates, views, tools }: Rights): string {
  const texts = [
    templates === null ? 'all templates' : templates.join(', ') || 'no template',
    views === null || views.length === 0
      ? ''
      : `${views.length === 1 ? 'view' : 'views'} ${views.join(', ')}`,
    tools === null ? '' : `${plural(tools.length, 'rule')} for tools`,
  ];
  return texts.filter((text) => text !== '').join('; ');
}
