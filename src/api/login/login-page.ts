import { hash } from 'node:crypto'
import { CSRF_HEADER } from './sessions.ts'

const STYLE = `body{font:16px/1.5 system-ui,sans-serif;max-width:26rem;margin:15vh auto;padding:0 1rem;color:#1c2430;background:#fff}
h1{font-size:1.25rem}input,button{font:inherit;padding:.5rem .75rem;border:1px solid #b6bec9;border-radius:.375rem}
input{width:100%;box-sizing:border-box;margin:.25rem 0 .75rem}button{background:#1c2430;color:#fff;cursor:pointer}
[role=status]{margin-top:1rem;min-height:1.5rem}[hidden]{display:none}
@media(prefers-color-scheme:dark){body,input{background:#12161d;color:#e6e9ee}button{background:#e6e9ee;color:#12161d}}`

/** Sends the token, or the code of a link, and shows who is signed in. What comes from the server is shown as text, never as HTML. */
const SCRIPT = `const at=(id)=>document.getElementById(id)
const say=(text)=>{at('said').textContent=text}
const send=(path,body)=>fetch(path,{method:'POST',credentials:'same-origin',headers:{'content-type':'application/json','${CSRF_HEADER}':'1'},body:JSON.stringify(body)})
const show=(me)=>{at('form').hidden=me!==undefined;at('out').hidden=me===undefined;say(me===undefined?'':'Signed in as '+me.name+' ('+me.role+').')}
const login=async(body)=>{say('…');const answer=await send('/auth/login',body);const told=await answer.json();if(answer.ok)show(told);else say(told.detail+(told.hint?' '+told.hint:''))}
at('form').addEventListener('submit',(event)=>{event.preventDefault();const token=at('token').value.trim();at('token').value='';login({token})})
at('out').addEventListener('click',async()=>{await send('/auth/logout',{});show(undefined)})
const code=location.hash.slice(1)
if(code!==''){history.replaceState(null,'',location.pathname);login({code})}
else fetch('/auth/me',{credentials:'same-origin'}).then(async(answer)=>{if(answer.ok)show(await answer.json())})`

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sign in to Servo</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Sign in to Servo</h1>
<form id="form">
<label for="token">Token</label>
<input id="token" type="password" autocomplete="current-password" required autofocus>
<button>Sign in</button>
</form>
<button id="out" hidden>Sign out</button>
<p id="said" role="status"></p>
<script type="module">${SCRIPT}</script>
</body>
</html>
`

const sourceOf = (text: string): string => `'sha256-${hash('sha256', text, 'base64')}'`

const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  // Nothing runs but what is written above, and no other page may show this one.
  'content-security-policy': [
    "default-src 'none'",
    `script-src ${sourceOf(SCRIPT)}`,
    `style-src ${sourceOf(STYLE)}`,
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

/** The page on which a person signs in. */
export const loginPage = (): Response => new Response(PAGE, { headers: HEADERS })
