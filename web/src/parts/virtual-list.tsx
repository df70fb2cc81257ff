// A list of which only the visible rows are in the document: all rows have the same height, so that positions
// are known without measuring. Short lists are rendered whole and scroll with the page.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

interface VirtualListProps<T> {
  readonly items: readonly T[];
  readonly keyOf: (item: T) => string;
  readonly rowHeight: number;
  readonly label: string;
  readonly children: (item: T) => ComponentChildren;
}

/** Rows above and below the visible ones. */
const OVERSCAN = 6;
/** Lists up to this size are rendered whole. */
const WHOLE = 60;

export function VirtualList<T>({ items, keyOf, rowHeight, label, children }: VirtualListProps<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const isWhole = items.length <= WHOLE;
  useEffect(() => {
    const element = box.current;
    if (element === null || isWhole) return;
    const measure = (): void => setView({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener('scroll', measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', measure);
    };
  }, [isWhole]);

  const count = isWhole ? items.length : Math.ceil(view.height / rowHeight) + 2 * OVERSCAN;
  // A filter may leave fewer rows than were above the visible ones.
  const top = Math.min(Math.floor(view.top / rowHeight) - OVERSCAN, items.length - count);
  const first = Math.max(0, top);
  const shown = items.slice(first, first + count);
  const before = first * rowHeight;
  const after = (items.length - first - shown.length) * rowHeight;
  return (
    <div ref={box} class={isWhole ? 'list' : 'list scrolls'} tabIndex={isWhole ? undefined : 0}>
      <ul aria-label={label} style={{ paddingTop: `${before}px`, paddingBottom: `${after}px` }}>
        {shown.map((item, index) => (
          <li
            key={keyOf(item)}
            aria-setsize={items.length}
            aria-posinset={first + index + 1}
            style={{ height: `${rowHeight}px` }}
          >
            {children(item)}
          </li>
        ))}
      </ul>
    </div>
  );
}
