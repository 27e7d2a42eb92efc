// Makes and revokes tokens. The secret of a new one is in this answer alone.
import { BASE } from './base.js'
import { keepNotice, showKeptNotice, showToast } from './toasts.js'

showKeptNotice()

document.getElementById('new-token')?.addEventListener('submit', async (event) => {
  event.preventDefault()
  const fields = new FormData(/** @type {HTMLFormElement} */ (event.target))
  const made = await sendRequest('POST', '/api/v1/tokens', {
    name: fields.get('name'),
    role: fields.get('role'),
    ttl: `${fields.get('days')}d`
  }, String(fields.get('token')).trim())
  if (!made) return
  const place = /** @type {HTMLElement} */ (document.getElementById('made-token'))
  const code = place.querySelector('code')
  if (code) code.textContent = made.token
  place.hidden = false
})

document.addEventListener('click', async ({ target }) => {
  const id = /** @type {HTMLElement} */ (target).closest('[data-revoke]')?.getAttribute('data-revoke')
  const ended = id && await sendRequest('DELETE', `/api/v1/tokens/${id}`)
  if (!ended) return
  const others = ended.alsoEnded.length > 0 ? ` The tokens that it created are revoked, too: ${ended.alsoEnded.join(', ')}.` : ''
  keepNotice(`Token ${id} is revoked; its sessions are closed.${others}`)
  location.reload()
})

/**
 * @param {string} method
 * @param {string} path
 * @param {object} [body]
 * @param {string} [token] instead of the session
 * @returns {Promise<any>} null: refused; the page shows why
 */
async function sendRequest (method, path, body, token) {
  const response = await fetch(BASE + path, {
    method,
    headers: {
      accept: 'application/json, application/problem+json',
      ...(body && { 'content-type': 'application/json' }),
      ...(token && { authorization: `Bearer ${token}` })
    },
    body: body && JSON.stringify(body)
  })
  const answer = await response.json()
  if (response.ok) return answer
  showToast(answer.detail)
  return null
}
