// The content of a page without data: loading, failed, or empty.

import type { ComponentChildren } from 'preact';
import { Icon } from './icon.tsx';

export function Loading({ what }: { readonly what: string }) {
  return (
    <p class="status" role="status">
      <span class="spinner" aria-hidden="true" />
      Loading {what}…
    </p>
  );
}

interface FailureProps {
  readonly text: string;
  readonly onRetry?: (() => void) | undefined;
  /** The words of its button. */
  readonly action?: string;
}

export function Failure({ text, onRetry, action = 'Try again' }: FailureProps) {
  return (
    <div class="callout bad" role="alert">
      <Icon name="bad" />
      <p>{text}</p>
      {onRetry && (
        <button type="button" onClick={onRetry}>
          {action}
        </button>
      )}
    </div>
  );
}

interface OutdatedProps {
  readonly what: string;
  readonly onReload: (() => void) | undefined;
}

/** For a change that was refused, because another one came before it. */
export function Outdated({ what, onReload }: OutdatedProps) {
  return (
    <Failure
      text={`The ${what} was changed or deleted since you opened it. Read it again: what you entered here is lost.`}
      action="Read it again"
      onRetry={onReload}
    />
  );
}

interface ReadingProps {
  readonly what: string;
  readonly isRead: boolean;
  readonly error: string | undefined;
  readonly reload: () => void;
}

/** Above data that is read: that it is not there yet, or that the last attempt failed. */
export function Reading({ what, isRead, error, reload }: ReadingProps) {
  if (error !== undefined) return <Failure text={error} onRetry={reload} />;
  return isRead ? null : <Loading what={what} />;
}

/** Above data of the deployment, when nodes did not answer. */
export function Partial({ nodes }: { readonly nodes: readonly string[] }) {
  if (nodes.length === 0) return null;
  return (
    <p class="callout warn" role="status">
      <Icon name="warn" />
      <span>Without the data of nodes that do not answer: {nodes.join(', ')}</span>
    </p>
  );
}

interface EmptyProps {
  readonly title: string;
  readonly children?: ComponentChildren;
}

export function Empty({ title, children }: EmptyProps) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}
