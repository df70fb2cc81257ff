// A labelled control of a form, with its hint.

import { type ComponentChildren, cloneElement, type VNode } from 'preact';
import { useId } from 'preact/hooks';

interface FieldProps {
  readonly label: ComponentChildren;
  readonly hint?: ComponentChildren;
  readonly isRequired?: boolean;
  readonly children: VNode<{ id?: string; 'aria-describedby'?: string }>;
}

export function Field({ label, hint, isRequired = false, children }: FieldProps) {
  const id = useId();
  const describes = hint === undefined ? {} : { 'aria-describedby': `${id}-hint` };
  return (
    <div class="field">
      <label for={id}>
        {label}
        {isRequired && <span class="required"> (required)</span>}
      </label>
      {cloneElement(children, { id, ...describes })}
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {typeof hint === 'string' ? withCode(hint) : hint}
        </p>
      )}
    </div>
  );
}

/** The text with what is between backticks as code. */
function withCode(text: string): ComponentChildren {
  return text.split('`').map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part));
}
