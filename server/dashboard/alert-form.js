import { eventsOf } from '../events/topics.js'

/** What the form of an alert says; empty fields are not given. */

const TEXTS = ['kind', 'name', 'url', 'dsn', 'secret', 'from', 'host', 'user', 'password']
const SEPARATORS = /[\s,;]+/

/** @param {Record<string, unknown>} fields @returns {Record<string, unknown>} as POST /alerts takes it */
export function alertOfForm (fields) {
  const { events, ...changes } = changesOfForm(fields)
  return { ...changes, ...(events !== null && { events }) }
}

/** @param {Record<string, unknown>} fields @returns {Record<string, unknown>} as PATCH /alerts/{id} takes it */
export function changesOfForm (fields) {
  const texts = TEXTS.map((name) => [name, textOf(fields[name])]).filter(([, text]) => text !== '')
  const to = listOf(fields.to)
  const port = textOf(fields.port)
  return {
    ...Object.fromEntries(texts),
    ...(to.length > 0 && { to }),
    ...(port !== '' && { port: Number(port) }),
    events: eventsOf([fields.topic ?? []].flat().map(String), listOf(fields.events))
  }
}

/** @param {unknown} value @returns {string[]} */
function listOf (value) {
  return textOf(value).split(SEPARATORS).filter((part) => part !== '')
}

/** @param {unknown} value */
function textOf (value) {
  return typeof value === 'string' ? value.trim() : ''
}
