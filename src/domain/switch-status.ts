interface Switchable {
  status: 'ACTIVE' | 'PAUSED'
  status_event_id: string | null
}

/**
 * Pauses or resumes a schedule or a sensor: the latest event by its id counts, in whatever order they arrive. Returns the row if it
 * was changed. An older event is not a refusal: it counts as seen, or its repetition under a newer id would win.
 */
export function switchStatus<R extends Switchable>(
  known: Readonly<R> | undefined,
  edit: () => R,
  status: R['status'],
  eventId: string,
): R | undefined {
  if (known?.status_event_id != null && known.status_event_id >= eventId) return undefined
  const row = edit()
  row.status = status
  row.status_event_id = eventId
  return row
}
