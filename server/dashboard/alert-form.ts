import { eventsOf } from '../events/topics.ts'

/** What the form of an alert says; empty fields are not given. */

const TEXTS = ['kind', 'name', 'url', 'dsn', 'secret', 'from', 'host', 'user', 'password']
const SEPARATORS = /[\s,;]+/

/** @returns as POST /alerts takes it */
export function alertOfForm (fields: Record<string, unknown>): Record<string, unknown> {
  const { events, apps = null, ...changes } = changesOfForm(fields)
  return { ...changes, ...(events !== null && { events }), ...(apps !== null && { apps }) }
}

/** @returns as PATCH /alerts/{id} takes it */
export function changesOfForm (fields: Record<string, unknown>): Record<string, unknown> {
  const texts = TEXTS.map((name) => [name, textOf(fields[name])]).filter(([, text]) => text !== '')
  const to = listOf(fields.to)
  const port = textOf(fields.port)
  const apps = listOf(fields.apps)
  return { ...Object.fromEntries(texts), ...(to.length > 0 && { to }), ...(port !== '' && { port: Number(port) }),
    ...('apps' in fields && { apps: apps.length > 0 ? apps : null }),
    events: eventsOf([fields.topic ?? []].flat().map(String), listOf(fields.events)) }
}

function listOf (value: unknown): string[] {
  return textOf(value).split(SEPARATORS).filter((part) => part !== '')
}

function textOf (value: unknown) {
  return typeof value === 'string' ? value.trim() : ''
}
