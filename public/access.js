// Gives access and takes it away. The secret of a new token and the address of a new link are shown once, as no later answer has them.
import { BASE } from './base.js'
import { findElement } from './elements.js'
import { warnOfChange } from './changed.js'
import { localiseTimes } from './ticks.js'
import { showToast } from './toasts.js'

/** @typedef {{ detail: string, now?: string }} Problem */

onSubmit('new-link', async (fields) => {
  const { name, role } = Object.fromEntries(fields)
  /** @type {{ url: string, until: string } | null} */
  const made = await sendRequest('POST', '/api/v1/sign-in-links', { ...personOf(fields), ttl: fields.get('ttl') }, tokenIn(fields))
  if (made) showMade('made-link', { name, role: `${role}`, secret: made.url, until: made.until })
})

onSubmit('new-token', async (fields) => {
  /** @type {{ token: string } | null} */
  const made = await sendRequest('POST', '/api/v1/tokens', { ...personOf(fields), ttl: `${fields.get('days')}d` }, tokenIn(fields))
  if (made) showMade('made-token', { name: fields.get('name'), secret: made.token })
})

onSubmit('revoke', async (fields, form) => {
  const { id, tag } = Object.fromEntries(fields)
  const answer = await ask('DELETE', `/api/v1/tokens/${id}`, { headers: { 'if-match': `"${tag}"` } })
  if (answer.status === 412) return warnOfChange(form, /** @type {Problem} */ (await answer.json()), 'tag')
  form.closest('dialog')?.close()
  if (!answer.ok) return showToast(/** @type {Problem} */ (await answer.json()).detail)
  /** @type {{ name: string, kind: string, alsoEnded: number[] }} */
  const { name, kind, alsoEnded } = await answer.json()
  const others = alsoEnded.length > 0 ? ` What it had created has ended, too: ${alsoEnded.join(', ')}.` : ''
  showToast(`The ${kind} of ${name} is revoked; its sessions are closed.${others}`, 'info')
})

// Links for operators and admins need a token: sessions that could make such links would renew themselves for ever.
document.querySelector('#new-link [name=role]')?.addEventListener('change', ({ target }) => {
  const needsToken = /** @type {HTMLSelectElement} */ (target).value !== 'viewer'
  for (const part of document.querySelectorAll('#new-link [data-needs-token]')) /** @type {HTMLElement} */ (part).hidden = !needsToken
  findElement('#new-link [name=token]', HTMLInputElement).disabled = !needsToken
})

document.addEventListener('click', ({ target }) => {
  const opener = target instanceof Element && target.closest('[data-dialog=dialog-revoke]')
  if (!opener) return
  const own = document.querySelector('[data-own]')?.getAttribute('data-own')
  findElement('#revoke-own', HTMLElement).hidden = !own || !opener.getAttribute('data-fill-ends')?.split(' ').includes(own)
})

/** @param {string} id @param {(fields: FormData, form: HTMLFormElement) => Promise<void>} send */
function onSubmit (id, send) {
  const form = findElement(`#${id}`, HTMLFormElement)
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    await send(new FormData(form), form).catch(() => showToast('The master did not answer. Nothing was changed.'))
  })
}

/** @param {FormData} fields */
function personOf (fields) {
  const apps = fields.getAll('app')
  return { name: fields.get('name'), role: fields.get('role'), ...(apps.length > 0 && { apps }) }
}

/** @param {FormData} fields @returns {string | undefined} undefined: the session is enough */
function tokenIn (fields) {
  return fields.get('token')?.toString().trim()
}

/** @param {string} id @param {{ name: unknown, role?: string, secret: string, until?: string }} made */
function showMade (id, { name, role = '', secret, until }) {
  const place = findElement(`#${id}`, HTMLElement)
  for (const part of place.querySelectorAll('[data-made]')) part.textContent = part.getAttribute('data-made') === 'name' ? String(name) : role
  findElement('code', HTMLElement, place).textContent = secret
  place.querySelector('time')?.setAttribute('datetime', until ?? '')
  localiseTimes(place)
  place.hidden = false
  findElement('[data-copy]', HTMLElement, place).focus()
}

/**
 * @template Answer
 * @param {string} method @param {string} path @param {object} body @param {string} [token] instead of the session
 * @returns {Promise<Answer | null>} null: refused; the page shows why
 */
async function sendRequest (method, path, body, token) {
  const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
  const response = await ask(method, path, { headers, body: JSON.stringify(body) })
  const answer = await response.json()
  if (response.ok) return answer
  showToast(answer.detail)
  return null
}

/** @param {string} method @param {string} path @param {{ headers: Record<string, string>, body?: string }} request */
function ask (method, path, { headers, body }) {
  return fetch(BASE + path, { method, headers: { accept: 'application/json, application/problem+json', ...headers }, body })
}
