// Modal dialogs, with the element of the browser, which keeps the focus inside.

import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { Icon } from './icon.tsx';
import { attempt } from './notices.tsx';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  /** True for a dialog at the right edge, in the full height of the window. */
  readonly isDrawer?: boolean;
  /** True when what opened it is about to go: the focus goes to the page. */
  readonly isOpenerGone?: { readonly current: boolean };
  readonly children: ComponentChildren;
}

export function Dialog({ title, onClose, isDrawer = false, isOpenerGone, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const opener = document.activeElement as HTMLElement | null;
    dialog.current?.showModal();
    // The browser restores the focus when a dialog is closed, not when it is removed. Without an opener, the address opened it.
    return () => {
      const isThere = opener?.isConnected && opener !== document.body && !isOpenerGone?.current;
      (isThere ? opener : document.getElementById('main'))?.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={isDrawer ? 'drawer' : undefined}
      aria-labelledby={heading}
      onClose={(event) => {
        // The closing of a dialog inside this one bubbles up, too.
        if (event.target === dialog.current) onClose();
      }}
    >
      <header>
        <h2 id={heading}>{title}</h2>
        <button type="button" class="plain" aria-label="Close" onClick={() => dialog.current?.close()}>
          <Icon name="close" />
        </button>
      </header>
      {children}
    </dialog>
  );
}

interface ConfirmProps {
  readonly title: string;
  readonly text: string;
  readonly action: string;
  /** Carries it out, when the account confirms. */
  readonly run: () => Promise<unknown>;
  /** Reported when it is done. */
  readonly done: string;
  /** `isDone`: false when it was refused. */
  readonly onDone: (isDone: boolean) => void;
  readonly onClose: () => void;
}

/** Asks for confirmation of an irreversible action, and carries it out. */
export function Confirm({ title, text, action, run, done, onDone, onClose }: ConfirmProps) {
  const [isBusy, setBusy] = useState(false);
  const isOpen = useRef(true);
  const isDone = useRef(false);
  useEffect(
    () => () => {
      isOpen.current = false;
    },
    [],
  );
  const confirm = async (): Promise<void> => {
    setBusy(true);
    isDone.current = await attempt(run, done);
    onDone(isDone.current);
    if (isOpen.current) onClose(); // or it closed another one, opened since
  };
  return (
    <Dialog title={title} onClose={onClose} isOpenerGone={isDone}>
      <p>{text}</p>
      <div class="actions end">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" class="danger" disabled={isBusy} onClick={() => void confirm()}>
          {action}
        </button>
      </div>
    </Dialog>
  );
}
