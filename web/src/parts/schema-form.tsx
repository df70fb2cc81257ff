// The fields of a form for a JSON Schema. The value is plain JSON; unset fields are absent.

import { useState } from 'preact/hooks';
import { shortened } from '../format.ts';
import { exactValue } from '../json.ts';
import {
  type Choice,
  type Control,
  controlOf,
  DEEPEST,
  emptyValue,
  hasHiddenDefault,
  initialValue,
  isRequired,
  labelOf,
  numberOf,
  resolved,
  type Schema,
  textOf,
  titleOf,
} from '../schema.ts';
import { Field } from './field.tsx';
import { Icon } from './icon.tsx';

interface SchemaFieldProps {
  readonly name: string;
  readonly schema: Schema;
  /** The document that references point into. */
  readonly root: Schema;
  readonly value: unknown;
  /** Undefined: the field is unset. */
  readonly onChange: (value: unknown) => void;
  readonly isNeeded?: boolean;
  readonly depth?: number;
}

export function SchemaFields({ schema, root, value, onChange, depth = 0 }: Omit<SchemaFieldProps, 'name'>) {
  const control = controlOf(resolved(schema, root));
  if (control.kind !== 'object') return null;
  const values: Schema = Object(value);
  return (
    <>
      {control.properties.map(([name, part]) => (
        <SchemaField
          key={name}
          name={name}
          schema={part}
          root={root}
          value={values[name]}
          isNeeded={isRequired(schema, name)}
          depth={depth + 1}
          onChange={(next) => onChange(withField(values, name, next))}
        />
      ))}
    </>
  );
}

function withField(values: Schema, name: string, value: unknown): Schema {
  const { [name]: _, ...others } = values;
  return value === undefined ? others : { ...values, [name]: value };
}

function SchemaField({ schema: written, ...given }: SchemaFieldProps) {
  const { root, depth = 0, name, value, onChange } = given;
  const schema = resolved(written, root);
  const isNeeded = given.isNeeded === true && !hasHiddenDefault(schema);
  const props = { ...given, isNeeded };
  const control: Control = depth > DEEPEST ? { kind: 'json' } : controlOf(schema);
  const label = titleOf(schema, name);
  const description = textOf(schema, 'description');
  const hint = description && shortened(description);
  if (control.kind === 'object') {
    return (
      <fieldset class="group">
        <legend class="label">{label}</legend>
        {hint && <p class="hint">{hint}</p>}
        <SchemaFields
          {...props}
          schema={schema}
          onChange={(next) =>
            onChange(Object.keys(Object(next)).length === 0 && !isNeeded ? undefined : next)
          }
        />
      </fieldset>
    );
  }
  if (control.kind === 'choices') return <SeveralChoices {...props} label={label} hint={hint} {...control} />;
  if (control.kind === 'list')
    return <ListField {...props} label={label} hint={hint} items={control.items} />;
  if (control.kind === 'boolean') {
    return (
      <div class="field">
        <label class="check">
          <input
            type="checkbox"
            checked={value === true}
            onChange={(event) => onChange(event.currentTarget.checked)}
          />
          {label}
        </label>
        {hint && <p class="hint">{hint}</p>}
      </div>
    );
  }
  return (
    <Field label={label} hint={hint} isRequired={isNeeded}>
      <Input {...props} schema={schema} control={control} />
    </Field>
  );
}

type InputControl = Extract<Control, { kind: 'text' | 'number' | 'choice' | 'json' }>;

interface InputProps extends Omit<SchemaFieldProps, 'name'> {
  readonly id?: string;
  readonly 'aria-describedby'?: string;
  readonly control: InputControl;
}

function Input(props: InputProps) {
  const { schema, value, onChange, isNeeded = false, id, control, 'aria-describedby': describedBy } = props;
  const common = { id, 'aria-describedby': describedBy, required: isNeeded };
  const example = exampleOf(schema);
  if (control.kind === 'json') return <JsonInput {...common} value={value} onChange={onChange} />;
  if (control.kind === 'choice') {
    const selected = control.choices.findIndex((choice) => isSame(choice.value, value));
    return (
      <select
        {...common}
        value={selected < 0 ? '' : selected}
        onChange={({ currentTarget: { value: index } }) =>
          onChange(index === '' ? undefined : control.choices[Number(index)]?.value)
        }
      >
        <option value="">{isNeeded ? 'Choose…' : 'Not set'}</option>
        {control.choices.map(({ label }, index) => (
          <option key={label} value={index}>
            {label}
          </option>
        ))}
      </select>
    );
  }
  if (control.kind === 'number') {
    const rules = { min: numberOf(schema, 'minimum'), max: numberOf(schema, 'maximum') };
    const step = control.isWhole ? 1 : 'any';
    return (
      <NumberInput
        {...common}
        {...rules}
        step={step}
        placeholder={example}
        value={value}
        onChange={onChange}
      />
    );
  }
  const text = {
    ...common,
    minLength: numberOf(schema, 'minLength'),
    maxLength: numberOf(schema, 'maxLength'),
    placeholder: example,
    value: value === undefined ? '' : labelOf(value),
    onInput: ({ currentTarget }: { readonly currentTarget: HTMLInputElement | HTMLTextAreaElement }) =>
      onChange(currentTarget.value === '' && !isNeeded ? undefined : currentTarget.value),
  };
  if (control.isLong) return <textarea {...text} />;
  return <input {...text} {...inputType(control.format)} pattern={textOf(schema, 'pattern')} />;
}

interface NumberInputProps {
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  readonly [attribute: string]: unknown;
}

/** A number. Its text stays as it was typed: `-0` and `1.0` are the beginnings of other numbers than 0 and 1. */
function NumberInput({ value, onChange, ...rest }: NumberInputProps) {
  const [typed, setTyped] = useState({ text: '', value: undefined as unknown });
  const text = value === undefined ? '' : labelOf(value);
  const onInput = ({ currentTarget: input }: { readonly currentTarget: HTMLInputElement }): void => {
    const next = input.value === '' ? undefined : numberOfText(input.value);
    setTyped({ text: input.value, value: next });
    onChange(next);
  };
  return (
    <input {...rest} type="number" value={typed.value === value ? typed.text : text} onInput={onInput} />
  );
}

function numberOfText(text: string): unknown {
  return /^-?[1-9]\d{15,}$/.test(text) ? exactValue(text) : Number(text);
}

/** The type of the input by format; other texts have the type `text`. */
function inputType(format: string) {
  if (format === 'email') return { type: 'email' } as const;
  if (format === 'uri') return { type: 'url' } as const;
  if (format === 'date') return { type: 'date' } as const;
  if (format === 'time') return { type: 'time' } as const;
  if (format === 'password') return { type: 'password' } as const;
  return { type: 'text' } as const;
}

function exampleOf({ examples }: Schema): string | undefined {
  const first = Array.isArray(examples) ? examples[0] : undefined;
  return first === undefined ? undefined : labelOf(first);
}

interface JsonInputProps {
  readonly id?: string | undefined;
  readonly 'aria-describedby'?: string | undefined;
  readonly required?: boolean;
  readonly rows?: number;
  readonly label?: string;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
}

/** A value as JSON. Text that is not JSON stays in the field with a message, and changes nothing. */
export function JsonInput({ value, onChange, label, ...rest }: JsonInputProps) {
  const [text, setText] = useState(() => (value === undefined ? '' : JSON.stringify(value, null, 2)));
  const onInput = ({ currentTarget: area }: { readonly currentTarget: HTMLTextAreaElement }): void => {
    setText(area.value);
    try {
      const next = area.value.trim() === '' ? undefined : exactValue(area.value);
      area.setCustomValidity('');
      onChange(next);
    } catch (thrown) {
      area.setCustomValidity(`Invalid JSON: ${thrown instanceof Error ? thrown.message : thrown}`);
    }
  };
  return (
    <textarea {...rest} aria-label={label} class="mono" spellcheck={false} value={text} onInput={onInput} />
  );
}

/** Long numbers, as objects and arrays, are equal by what they contain. */
function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

interface NamedProps extends SchemaFieldProps {
  readonly label: string;
  readonly hint: string | undefined;
}

function SeveralChoices(props: Omit<NamedProps, 'schema'> & { readonly choices: readonly Choice[] }) {
  const { label, hint, choices, value, onChange } = props;
  const selected: readonly unknown[] = Array.isArray(value) ? value : [];
  const isSelected = (one: unknown): boolean => selected.some((each) => isSame(each, one));
  const toggle = (one: unknown, isOn: boolean): void => {
    const next = choices
      .map((choice) => choice.value)
      .filter((each) => (each === one ? isOn : isSelected(each)));
    onChange(next);
  };
  return (
    <fieldset class="group">
      <legend class="label">{label}</legend>
      {hint && <p class="hint">{hint}</p>}
      {choices.map((choice) => (
        <label key={choice.label} class="check">
          <input
            type="checkbox"
            checked={isSelected(choice.value)}
            onChange={(event) => toggle(choice.value, event.currentTarget.checked)}
          />
          {choice.label}
        </label>
      ))}
    </fieldset>
  );
}

function ListField(props: Omit<NamedProps, 'schema'> & { readonly items: Schema }) {
  const { label, hint, items, root, value, onChange, depth = 0 } = props;
  const entries: readonly unknown[] = Array.isArray(value) ? value : [];
  /** Part of each key: a field of JSON keeps its text, which then belongs to another entry. */
  const [removals, setRemovals] = useState(0);
  const set = (index: number, next: unknown): void =>
    onChange(entries.map((entry, at) => (at === index ? (next ?? '') : entry)));
  return (
    <fieldset class="group">
      <legend class="label">{label}</legend>
      {hint && <p class="hint">{hint}</p>}
      {entries.map((entry, index) => (
        <div key={`${removals} ${index}`} class="entry">
          <SchemaField
            name={`${label} ${index + 1}`}
            schema={items}
            root={root}
            value={entry}
            depth={depth + 1}
            isNeeded
            onChange={(next) => set(index, next)}
          />
          <button
            type="button"
            class="plain"
            aria-label={`Remove ${label} ${index + 1}`}
            onClick={() => {
              setRemovals(removals + 1);
              onChange(entries.filter((_, at) => at !== index));
            }}
          >
            <Icon name="close" />
          </button>
        </div>
      ))}
      <div class="actions">
        <button
          type="button"
          class="small"
          onClick={() =>
            onChange([
              ...entries,
              initialValue(items, root) ?? emptyValue(controlOf(resolved(items, root))) ?? '',
            ])
          }
        >
          <Icon name="plus" />
          Add
        </button>
      </div>
    </fieldset>
  );
}
