// A labelled control of a form, with its hint and its error.

import { type ComponentChildren, cloneElement, type VNode } from 'preact';
import { useId } from 'preact/hooks';

interface FieldProps {
  readonly label: ComponentChildren;
  readonly hint?: ComponentChildren;
  readonly error?: string | undefined;
  readonly isRequired?: boolean;
  readonly children: VNode<{ id?: string; 'aria-describedby'?: string; 'aria-invalid'?: boolean }>;
}

export function Field({ label, hint, error, isRequired = false, children }: FieldProps) {
  const id = useId();
  const note = error ?? hint;
  const describes = note === undefined ? {} : { 'aria-describedby': `${id}-note` };
  const invalid = error === undefined ? {} : { 'aria-invalid': true };
  return (
    <div class="field">
      <label for={id}>
        {label}
        {isRequired && <span class="required"> (required)</span>}
      </label>
      {cloneElement(children, { id, ...describes, ...invalid })}
      {note !== undefined && (
        <p class={error === undefined ? 'hint' : 'hint error'} id={`${id}-note`}>
          {note}
        </p>
      )}
    </div>
  );
}
