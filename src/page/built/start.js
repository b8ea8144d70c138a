import{$ as e,J as t,K as n,M as r,P as i,Q as a,Z as o,it as s,ot as c,rt as l,st as u,tt as d,w as f}from"./page.js";const p={value:{title:`Value`,help:`JSON, as the kind expects it.`,wrong:`The value is no JSON`,empty:`Write the value: it is checked before anything starts.`,taken:`The kind takes this value.`,busy:`Checking the value …`},params:{title:`Params`,help:`A JSON object: what the saga begins with.`,wrong:`The params are no JSON`,empty:`Write the params, {} if there are none: they are checked before anything starts.`,taken:`The machine takes these params.`,busy:`Checking the params …`}};function m({value:e,key:t,name:n,labels:r,priority:i},o){let s={value:g(o.wrong,()=>a(e))};t&&(s.idempotency_key=t),n&&(s.name=n),i&&(s.priority=Number(i));let c=r.split(`
`).map(e=>e.trim()).filter(Boolean);return c.length>0&&(s.labels=Object.fromEntries(c.map(h))),s}function h(e){let t=e.indexOf(`=`);if(t<1)throw new o(400,{detail:`The label “${e}” has no name.`,remedy:`Write each label as name=value on a line of its own.`});return[e.slice(0,t).trim(),e.slice(t+1).trim()]}function g(e,t){try{return t()}catch(t){throw t instanceof o?t:new o(400,{detail:`${e}: ${t instanceof Error?t.message:t}.`,remedy:`Correct it.`})}}function _(e){if(!(e instanceof o))throw e;return e}function v({kind:a,takes:o,onClose:h}){let g=p[o],[v,b]=u({value:``,key:``,name:``,labels:``,priority:``,reason:``}),[x,S]=u(!1),[C,w]=u(null),[T,E]=u(!1),{overtake:D,attempt:O}=c(r({setBusy:E,setError:w,worded:_})).current,k=c(e()),A=`kinds/${encodeURIComponent(a)}/submit`,j=!v.value.trim(),{reason:M,...N}=v,P=JSON.stringify(N);s(()=>{if(D(),S(!1),w(null),E(!j),j)return;let e=window.setTimeout(()=>O(async e=>{await d(A,m(v,g),!0),e()&&S(!0)}),300);return()=>window.clearTimeout(e)},[P]);let F=()=>O(async()=>{let{submitted:e}=await d(A,{...m(v,g),reason:M,key:k.current});h(),n(t(e))}),I=!T&&x,L=(e,t,n,r=`text`)=>l`
    <label class="field"><span>${t} <span class="dim">${n}</span></span>
      <input type=${r} value=${v[e]} autocomplete="off" spellcheck="false" onInput=${t=>b({...v,[e]:t.target.value})} /></label>`,R=(e,t,n,r=2)=>l`
    <label class="field"><span>${t} <span class="dim">${n}</span></span>
      <textarea class="mono" rows=${r} value=${v[e]} autofocus=${e===`value`} autocomplete="off" spellcheck="false" onInput=${t=>b({...v,[e]:t.target.value})}></textarea></label>`;return l`
    <${i} title=${l`Start <bdi class="mono">${a}</bdi>`} onClose=${h}>
      <form onSubmit=${e=>{e.preventDefault(),I&&F()}}>
        ${R(`value`,g.title,g.help,6)}
        ${L(`key`,`Idempotency key`,`A second submission with this key finds the first.`)}
        ${L(`name`,`Name`,`Shown beside its id.`)}
        ${R(`labels`,`Labels`,`name=value, one a line.`)}
        ${L(`priority`,`Priority`,`0 unless set; higher goes first.`,`number`)}
        ${L(`reason`,`Reason`,`Recorded in the audit log.`)}
        <p role="status" class=${x?`done`:`dim`}>${y(g,j,T,x)}</p>
        ${C&&l`<${f} error=${C} />`}
        <footer>
          <button type="button" onClick=${h}>Cancel</button>
          <button type="submit" class="main" disabled=${!I}>Start</button>
        </footer>
      </form>
    <//>`}function y(e,t,n,r){return t?e.empty:r?e.taken:n?e.busy:``}export{v as Start};