import{$ as e,K as t,Q as n,W as r,Y as i,Z as a,at as o,ct as s,et as c,k as l,lt as u,nt as d,ot as f}from"./page.js";const p={value:{title:`Value`,help:`JSON, as the kind expects it.`,wrong:`The value is no JSON`,empty:`Write the value: it is checked before anything starts.`,taken:`The kind takes this value.`,busy:`Checking the value …`},params:{title:`Params`,help:`A JSON object: what the saga begins with.`,wrong:`The params are no JSON`,empty:`Write the params, {} if there are none: they are checked before anything starts.`,taken:`The machine takes these params.`,busy:`Checking the params …`}};function m({value:t,key:n,name:r,labels:i,priority:a},o){let s={value:g(o.wrong,()=>e(t))};n&&(s.idempotency_key=n),r&&(s.name=r),a&&(s.priority=Number(a));let c=i.split(`
`).map(e=>e.trim()).filter(Boolean);return c.length>0&&(s.labels=Object.fromEntries(c.map(h))),s}function h(e){let t=e.indexOf(`=`);if(t<1)throw new n(400,{detail:`The label “${e}” has no name.`,remedy:`Write each label as name=value on a line of its own.`});return[e.slice(0,t).trim(),e.slice(t+1).trim()]}function g(e,t){try{return t()}catch(t){throw t instanceof n?t:new n(400,{detail:`${e}: ${t instanceof Error?t.message:t}.`,remedy:`Correct it.`})}}function _(e){if(!(e instanceof n))throw e;return e}function v({kind:e,takes:n,onClose:h}){let g=p[n],[v,b]=u({value:``,key:``,name:``,labels:``,priority:``,reason:``}),[x,S]=u(!1),[C,w]=u(null),[T,E]=u(!1),{overtake:D,attempt:O}=s(i({setBusy:E,setError:w,worded:_})).current,k=s(c()),A=`kinds/${encodeURIComponent(e)}/submit`,j=!v.value.trim(),{reason:M,...N}=v,P=JSON.stringify(N);f(()=>{if(D(),S(!1),w(null),E(!j),j)return;let e=window.setTimeout(()=>O(async e=>{await d(A,m(v,g),!0),e()&&S(!0)}),300);return()=>window.clearTimeout(e)},[P]);let F=()=>O(async()=>{let{submitted:e}=await d(A,{...m(v,g),reason:M,key:k.current});h(),r(t(e))}),I=!T&&x,L=(e,t,n,r=`text`)=>o`
    <label class="field"><span>${t} <span class="dim">${n}</span></span>
      <input type=${r} value=${v[e]} autocomplete="off" spellcheck="false" onInput=${t=>b({...v,[e]:t.target.value})} /></label>`,R=(e,t,n,r=2)=>o`
    <label class="field"><span>${t} <span class="dim">${n}</span></span>
      <textarea class="mono" rows=${r} value=${v[e]} autofocus=${e===`value`} autocomplete="off" spellcheck="false" onInput=${t=>b({...v,[e]:t.target.value})}></textarea></label>`;return o`
    <${a} title=${o`Start <bdi class="mono">${e}</bdi>`} onClose=${h}>
      <form onSubmit=${e=>{e.preventDefault(),I&&F()}}>
        ${R(`value`,g.title,g.help,6)}
        ${L(`key`,`Idempotency key`,`A second submission with this key finds the first.`)}
        ${L(`name`,`Name`,`Shown beside its id.`)}
        ${R(`labels`,`Labels`,`name=value, one a line.`)}
        ${L(`priority`,`Priority`,`0 unless set; higher goes first.`,`number`)}
        ${L(`reason`,`Reason`,`Recorded in the audit log.`)}
        <p role="status" class=${x?`done`:`dim`}>${y(g,j,T,x)}</p>
        ${C&&o`<${l} error=${C} />`}
        <footer>
          <button type="button" onClick=${h}>Cancel</button>
          <button type="submit" class="main" disabled=${!I}>Start</button>
        </footer>
      </form>
    <//>`}function y(e,t,n,r){return t?e.empty:r?e.taken:n?e.busy:``}export{v as Start};