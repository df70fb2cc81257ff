// A labelled control of a form, with its hint.

import { type ComponentChildren, cloneElement, type VNode } from 'preact';
import { useId } from 'preact/hooks';

interface FieldProps {
  readonly label: ComponentChildren;
  readonly hint?: ComponentChildren;
  readonly isRequired?: boolean;
  /** The reason why its value was refused. */
  readonly error?: string | undefined;
  readonly children: VNode<{ id?: string; 'aria-describedby'?: string; 'aria-invalid'?: boolean }>;
}

export function Field({ label, hint, isRequired = false, error, children }: FieldProps) {
  const id = useId();
  const ids = [error !== undefined && `${id}-error`, hint !== undefined && `${id}-hint`]
    .filter(Boolean)
    .join(' ');
  const describes = {
    ...(ids === '' ? {} : { 'aria-describedby': ids }),
    ...(error === undefined ? {} : { 'aria-invalid': true }),
  };
  return (
    <div class="field">
      <label for={id}>
        {label}
        {isRequired && <span class="required"> (required)</span>}
      </label>
      {cloneElement(children, { id, ...describes })}
      {error !== undefined && (
        <p class="hint tone-bad" id={`${id}-error`}>
          {error}
        </p>
      )}
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {typeof hint === 'string' ? withCode(hint) : hint}
        </p>
      )}
    </div>
  );
}

/** The text, with the parts between backticks as code. */
function withCode(text: string): ComponentChildren {
  return text.split('`').map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part));
}
